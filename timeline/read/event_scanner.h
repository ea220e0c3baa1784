// Walks over the JSON of a trace, and reads its events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "timeline/read/parsed_event.h"

namespace hvdlite::timeline {

// Times beyond this (95 years) are no times; sums of two still fit.
inline constexpr int64_t kLatestTimeUs = 3'000'000'000'000'000;

// What returns a bool is false where the text is none of what is asked for:
// position() is then the first byte that cannot be, or the text's size, if it
// ends too early. Blanks before what is asked for are skipped.
class EventScanner {
 public:
  explicit EventScanner(absl::string_view text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  size_t position() const { return static_cast<size_t>(at_ - begin_); }
  void MoveTo(size_t position) { at_ = begin_ + position; }
  bool at_end() const { return at_ == end_; }

  // The next byte that is no blank; '\0' at the end.
  char Next();
  bool Take(char c);  // takes `c` alone

  // An object. What `event` points to lives until the next. Fields of other
  // types than Chrome's format asks for are taken for missing.
  bool Event(ParsedEvent* event);

  // Any value, whatever it says.
  bool Skip() {
    decoded_.clear();
    return Skip(/*depth=*/0);
  }

  // A text.
  bool Text(absl::string_view* text);

 private:
  struct Number {
    absl::string_view digits;  // all of it
    int64_t integer = 0;
    bool is_integer = true;
  };

  template <typename Value>
  bool Members(Value value);
  bool Skip(int depth);
  bool Literal(absl::string_view literal);
  size_t Digits();
  bool TakeNumber(Number* number);
  // False: it is another value, and is still to be skipped.
  bool StartsNumber();

  // What is left of a text that is more than plain ASCII.
  bool Decode(const char* first, absl::string_view* text);
  bool Escape(std::string* decoded);
  bool Hexadecimal(uint32_t* number);
  bool BeyondAscii();

  bool Field(absl::string_view key, ParsedEvent* event);
  bool TimeField(absl::string_view key, ParsedEvent* event);
  bool Process(int64_t* number);
  bool Id(absl::string_view* id);
  bool TakeArg(absl::string_view key, ParsedEvent* event);

  const char* const begin_;
  const char* at_;
  const char* const end_;
  std::deque<std::string> decoded_;  // texts since it or Skip() began
  std::map<std::string, int64_t> text_numbers_;  // of texts for numbers
};

// The time that `number`, a JSON number in microseconds, tells, rounded to ns;
// nullopt if it is beyond kLatestTimeUs.
std::optional<int64_t> TimeOf(absl::string_view number);

}  // namespace hvdlite::timeline
