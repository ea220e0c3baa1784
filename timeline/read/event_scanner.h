// Reads the JSON text of a trace, event by event.
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

// Larger times (95 years) are invalid; the sum of two still fits.
inline constexpr int64_t kLatestTimeUs = 3'000'000'000'000'000;

// Functions that return a bool skip blanks first. They return false if the text
// does not hold what they read: position() is then the first wrong byte, or the
// text's size if the text ends too early.
class EventScanner {
 public:
  explicit EventScanner(absl::string_view text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  size_t position() const { return static_cast<size_t>(at_ - begin_); }
  void MoveTo(size_t position) { at_ = begin_ + position; }
  bool at_end() const { return at_ == end_; }

  // The next byte that is not a blank; '\0' at the end.
  char Next();
  bool Take(char c);

  // Reads an object. What `event` points to is valid until the next event.
  // Fields whose types differ from Chrome's format count as missing.
  bool Event(ParsedEvent* event);

  // Skips any value.
  bool Skip() {
    decoded_.clear();
    return Skip(/*depth=*/0);
  }

  // Reads a string.
  bool Text(absl::string_view* text);

 private:
  struct Number {
    absl::string_view digits;  // with sign, fraction and exponent
    int64_t integer = 0;
    bool is_integer = true;
  };

  template <typename Value>
  bool Members(Value value);
  bool Skip(int depth);
  bool Literal(absl::string_view literal);
  size_t Digits();
  bool TakeNumber(Number* number);
  // If false, the next value is not a number, and the caller must skip it.
  bool StartsNumber();

  // Decodes a string from the first character that is not plain ASCII on.
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
  std::deque<std::string> decoded_;              // strings of the current event
  std::map<std::string, int64_t> text_numbers_;  // strings used as pid or tid
};

// Converts `number`, a JSON number in microseconds, to ns (rounded); nullopt if
// it is beyond kLatestTimeUs.
std::optional<int64_t> TimeOf(absl::string_view number);

}  // namespace hvdlite::timeline
