#include "timeline/read/event_scanner.h"

#include <array>
#include <charconv>
#include <cstring>

namespace hvdlite::timeline {
namespace {

// Values within values, at most.
constexpr int kMostDepth = 32;
// Digits that fit an int64_t whatever they are.
constexpr size_t kMostDigits = 18;

// Characters of a text that stand for themselves.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain = {};
  for (size_t c = 0x20; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Walks over the text. What returns a bool is false where the text is not
// plain.
class Scanner {
 public:
  explicit Scanner(absl::string_view text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  size_t position() const { return static_cast<size_t>(at_ - begin_); }

  bool Event(ParsedEvent* event) {
    event->Clear();
    if (!Take('{')) return false;
    return Members([&](absl::string_view key) { return Field(key, event); });
  }

 private:
  struct Number {
    absl::string_view digits;  // all of it
    int64_t integer = 0;
    bool is_integer = true;
  };

  void SkipBlanks() {
    while (at_ != end_ &&
           (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }

  bool Take(char c) {
    SkipBlanks();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  char Next() {
    SkipBlanks();
    return at_ == end_ ? '\0' : *at_;
  }

  bool Text(absl::string_view* text) {
    if (!Take('"')) return false;
    const char* const first = at_;
    while (at_ != end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
    *text = absl::string_view(first, static_cast<size_t>(at_ - first));
    return at_ != end_ && *at_++ == '"';
  }

  size_t Digits() {
    const char* const first = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return static_cast<size_t>(at_ - first);
  }

  bool TakeNumber(Number* number) {
    SkipBlanks();
    const char* const first = at_;
    const bool is_negative = at_ != end_ && *at_ == '-';
    if (is_negative) ++at_;
    const char* const first_digit = at_;
    const size_t digits = Digits();
    if (digits == 0 || digits > kMostDigits) return false;
    if (digits > 1 && *first_digit == '0') return false;
    int64_t magnitude = 0;
    for (const char* digit = first_digit; digit != at_; ++digit) {
      magnitude = magnitude * 10 + (*digit - '0');
    }
    number->integer = is_negative ? -magnitude : magnitude;
    number->is_integer = true;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      number->is_integer = false;
      if (Digits() == 0) return false;
    }
    number->digits = absl::string_view(first, static_cast<size_t>(at_ - first));
    return at_ == end_ || (*at_ != 'e' && *at_ != 'E');
  }

  bool Literal(absl::string_view literal) {
    if (static_cast<size_t>(end_ - at_) < literal.size() ||
        std::memcmp(at_, literal.data(), literal.size()) != 0) {
      return false;
    }
    at_ += literal.size();
    return true;
  }

  // What follows the '{' of an object. `value` takes the value of a key.
  template <typename Value>
  bool Members(Value value) {
    if (Take('}')) return true;
    do {
      absl::string_view key;
      if (!Text(&key) || !Take(':') || !value(key)) return false;
    } while (Take(','));
    return Take('}');
  }

  bool Skip(int depth) {
    if (depth > kMostDepth) return false;
    absl::string_view text;
    Number number;
    switch (Next()) {
      case '"':
        return Text(&text);
      case 't':
        return Literal("true");
      case 'f':
        return Literal("false");
      case 'n':
        return Literal("null");
      case '{':
        ++at_;
        return Members([&](absl::string_view) { return Skip(depth + 1); });
      case '[':
        ++at_;
        if (Take(']')) return true;
        do {
          if (!Skip(depth + 1)) return false;
        } while (Take(','));
        return Take(']');
      default:
        return TakeNumber(&number);
    }
  }

  bool Integer(int64_t* value) {
    Number number;
    if (!TakeNumber(&number) || !number.is_integer) return false;
    *value = number.integer;
    return true;
  }

  bool Id(absl::string_view* id) {
    if (Next() == '"') return Text(id);
    Number number;
    if (!TakeNumber(&number) || !number.is_integer) return false;
    *id = number.digits;
    return true;
  }

  bool Flag(bool* flag) {
    *flag = Next() == 't';
    return *flag ? Literal("true") : Literal("false");
  }

  bool Field(absl::string_view key, ParsedEvent* event) {
    Number number;
    if (key == "ts") {
      if (!TakeNumber(&number)) return false;
      event->start_ns = TimeOf(number.digits);
    } else if (key == "dur") {
      if (!TakeNumber(&number)) return false;
      const std::optional<int64_t> time_ns = TimeOf(number.digits);
      if (!time_ns.has_value() || *time_ns < 0) {
        event->has_bad_duration = true;
      } else {
        event->duration_ns = *time_ns;
      }
    } else if (key == "ph") {
      absl::string_view phase;
      if (!Text(&phase)) return false;
      event->phase = phase.empty() ? '\0' : phase.front();
    } else if (key == "name") {
      return Text(&event->name);
    } else if (key == "pid") {
      return Integer(&event->pid);
    } else if (key == "tid") {
      return Integer(&event->tid);
    } else if (key == "id") {
      return Id(&event->id);
    } else if (key == "bind_id") {
      return Id(&event->bind_id);
    } else if (key == "flow_in") {
      return Flag(&event->flow_in);
    } else if (key == "flow_out") {
      return Flag(&event->flow_out);
    } else if (key == "args" && Next() == '{') {
      ++at_;
      return Members(
          [&](absl::string_view arg) { return TakeArg(arg, event); });
    } else {
      return Skip(0);
    }
    return true;
  }

  bool TakeArg(absl::string_view key, ParsedEvent* event) {
    const char next = Next();
    if (next == '"') {
      absl::string_view text;
      if (!Text(&text)) return false;
      event->args.push_back({key, text});
    } else if (next == '-' || IsDigit(next)) {
      Number number;
      if (!TakeNumber(&number)) return false;
      if (number.is_integer) {
        event->args.push_back({key, number.integer});
      } else {
        double real = 0;
        std::from_chars(number.digits.data(),
                        number.digits.data() + number.digits.size(), real);
        event->args.push_back({key, real});
      }
    } else {
      return Skip(0);
    }
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
};

}  // namespace

size_t ScanEvent(absl::string_view text, ParsedEvent* event) {
  Scanner scanner(text);
  if (!scanner.Event(event)) return 0;
  event->text = text.substr(0, scanner.position());
  return scanner.position();
}

std::optional<int64_t> TimeOf(absl::string_view number) {
  const bool is_negative = !number.empty() && number.front() == '-';
  if (is_negative) number.remove_prefix(1);
  int64_t microseconds = 0;
  size_t at = 0;
  for (; at < number.size() && IsDigit(number[at]); ++at) {
    microseconds = microseconds * 10 + (number[at] - '0');
    if (microseconds > kLatestTimeUs) return std::nullopt;
  }
  int64_t rest_ns = 0;
  for (size_t i = at + 1; i < at + 4; ++i) {
    rest_ns = rest_ns * 10 + (i < number.size() ? number[i] - '0' : 0);
  }
  if (at + 4 < number.size() && number[at + 4] >= '5') ++rest_ns;
  const int64_t magnitude_ns = microseconds * 1000 + rest_ns;
  if (magnitude_ns > kLatestTimeUs * 1000) return std::nullopt;
  return is_negative ? -magnitude_ns : magnitude_ns;
}

}  // namespace hvdlite::timeline
