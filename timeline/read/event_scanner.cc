#include "timeline/read/event_scanner.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"

namespace hvdlite::timeline {
namespace {

// Limit of nested values; deeper nesting is damage.
constexpr int kMostDepth = 1024;

// Whether `c` stands for itself in a string.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain = {};
  for (size_t c = 0x20; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// As UTF-8.
void AppendCharacter(uint32_t c, std::string* text) {
  const auto append = [text](uint32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  if (c < 0x80) return append(c);
  if (c < 0x800) {
    append(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      append(0xe0 | c >> 12);
    } else {
      append(0xf0 | c >> 18);
      append(0x80 | (c >> 12 & 0x3f));
    }
    append(0x80 | (c >> 6 & 0x3f));
  }
  append(0x80 | (c & 0x3f));
}

// Infinite where it is too large, 0 where it is too small.
double RealOf(absl::string_view digits) {
  double real = 0;
  const auto read =
      absl::from_chars(digits.data(), digits.data() + digits.size(), real);
  const bool is_too_large =
      read.ec == std::errc::result_out_of_range && std::abs(real) > 1;
  return is_too_large ? std::numeric_limits<double>::infinity() : real;
}

}  // namespace

char EventScanner::Next() {
  while (at_ != end_ &&
         (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
    ++at_;
  }
  return at_ == end_ ? '\0' : *at_;
}

bool EventScanner::Take(char c) {
  if (Next() != c || at_ == end_) return false;
  ++at_;
  return true;
}

// What follows the '{' of an object. `value` takes the value of a key.
template <typename Value>
bool EventScanner::Members(Value value) {
  if (Take('}')) return true;
  do {
    absl::string_view key;
    if (!Text(&key) || !Take(':') || !value(key)) return false;
  } while (Take(','));
  return Take('}');
}

bool EventScanner::Event(ParsedEvent* event) {
  event->Clear();
  if (!decoded_.empty()) decoded_.clear();
  if (!Take('{')) return false;
  const size_t begin = position() - 1;
  if (!Members([&](absl::string_view key) { return Field(key, event); })) {
    return false;
  }
  event->text = absl::string_view(begin_ + begin, position() - begin);
  event->position = begin;
  return true;
}

bool EventScanner::Skip(int depth) {
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

bool EventScanner::Literal(absl::string_view literal) {
  for (const char c : literal) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
  }
  return true;
}

size_t EventScanner::Digits() {
  const char* const first = at_;
  while (at_ != end_ && IsDigit(*at_)) ++at_;
  return static_cast<size_t>(at_ - first);
}

bool EventScanner::StartsNumber() {
  const char next = Next();
  return next == '-' || IsDigit(next);
}

bool EventScanner::TakeNumber(Number* number) {
  Next();
  const char* const first = at_;
  if (at_ != end_ && *at_ == '-') ++at_;
  if (at_ != end_ && *at_ == '0') {
    ++at_;
  } else if (Digits() == 0) {
    return false;
  }
  number->is_integer =
      std::from_chars(first, at_, number->integer).ec == std::errc();
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    number->is_integer = false;
    if (Digits() == 0) return false;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    number->is_integer = false;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (Digits() == 0) return false;
  }
  number->digits = absl::string_view(first, static_cast<size_t>(at_ - first));
  return true;
}

bool EventScanner::Text(absl::string_view* text) {
  if (!Take('"')) return false;
  const char* const first = at_;
  while (at_ != end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
  if (at_ == end_) return false;
  if (*at_ != '"') return Decode(first, text);
  *text = absl::string_view(first, static_cast<size_t>(at_ - first));
  ++at_;
  return true;
}

bool EventScanner::Decode(const char* first, absl::string_view* text) {
  std::string decoded(first, at_);
  while (at_ != end_ && *at_ != '"') {
    const char* const begin = at_;
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '\\') {
      if (!Escape(&decoded)) return false;
      continue;
    }
    if (c < 0x20) return false;
    if (c < 0x80) {
      ++at_;
    } else if (!BeyondAscii()) {
      return false;
    }
    decoded.append(begin, at_);
  }
  if (at_ == end_) return false;
  ++at_;
  *text = decoded_.emplace_back(std::move(decoded));
  return true;
}

bool EventScanner::Escape(std::string* decoded) {
  constexpr absl::string_view kShort = "\"\\/bfnrt";
  constexpr absl::string_view kMeant = "\"\\/\b\f\n\r\t";
  if (++at_ == end_) return false;
  const size_t escape = kShort.find(*at_);
  if (escape != absl::string_view::npos) {
    decoded->push_back(kMeant[escape]);
    ++at_;
    return true;
  }
  uint32_t c = 0;
  if (!Literal("u") || !Hexadecimal(&c)) return false;
  if (c >= 0xd800 && c < 0xdc00) {  // the first of two
    uint32_t second = 0;
    if (!Literal("\\u") || !Hexadecimal(&second)) return false;
    if (second < 0xdc00 || second >= 0xe000) return false;
    c = 0x10000 + ((c - 0xd800) << 10) + (second - 0xdc00);
  } else if (c >= 0xdc00 && c < 0xe000) {
    return false;
  }
  AppendCharacter(c, decoded);
  return true;
}

bool EventScanner::Hexadecimal(uint32_t* number) {
  for (int left = 4; left > 0; --left, ++at_) {
    uint32_t digit = 0;
    if (at_ == end_ ||
        std::from_chars(at_, at_ + 1, digit, 16).ec != std::errc()) {
      return false;
    }
    *number = *number << 4 | digit;
  }
  return true;
}

// One character of UTF-8.
bool EventScanner::BeyondAscii() {
  const auto lead = static_cast<unsigned char>(*at_);
  if (lead < 0xc2 || lead > 0xf4) return false;
  // None is longer than it has to be, half of a pair, or beyond U+10FFFF.
  int least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  int most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  ++at_;
  for (int left = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3; left > 0; --left) {
    if (at_ == end_) return false;
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte < least || byte > most) return false;
    ++at_;
    least = 0x80;
    most = 0xbf;
  }
  return true;
}

bool EventScanner::Field(absl::string_view key, ParsedEvent* event) {
  absl::string_view text;
  const char next = Next();
  if (key == "ts" || key == "dur") {
    return StartsNumber() ? TimeField(key, event) : Skip();
  }
  if (key == "ph" && next == '"') {
    if (!Text(&text)) return false;
    event->phase = text.empty() ? '\0' : text.front();
    return true;
  }
  if (key == "name" && next == '"') return Text(&event->name);
  if (key == "pid") return Process(&event->pid);
  if (key == "tid") return Process(&event->tid);
  if (key == "id") return Id(&event->id);
  if (key == "bind_id") return Id(&event->bind_id);
  if (key == "flow_in") event->flow_in = next == 't';
  if (key == "flow_out") event->flow_out = next == 't';
  if (key == "args" && next == '{') {
    ++at_;
    return Members([&](absl::string_view arg) { return TakeArg(arg, event); });
  }
  return Skip();
}

bool EventScanner::TimeField(absl::string_view key, ParsedEvent* event) {
  Number number;
  if (!TakeNumber(&number)) return false;
  const std::optional<int64_t> time_ns = TimeOf(number.digits);
  if (key == "ts") {
    event->start_ns = time_ns;
  } else if (!time_ns.has_value() || *time_ns < 0) {
    event->has_bad_duration = true;
  } else {
    event->duration_ns = *time_ns;
  }
  return true;
}

bool EventScanner::Process(int64_t* number) {
  if (Next() == '"') {
    absl::string_view text;
    if (!Text(&text)) return false;
    if (absl::SimpleAtoi(text, number)) return true;
    const auto next = -static_cast<int64_t>(text_numbers_.size()) - 1;
    *number = text_numbers_.try_emplace(std::string(text), next).first->second;
    return true;
  }
  if (!StartsNumber()) return Skip();
  Number taken;
  if (!TakeNumber(&taken)) return false;
  if (taken.is_integer) *number = taken.integer;
  return true;
}

bool EventScanner::Id(absl::string_view* id) {
  if (Next() == '"') return Text(id);
  if (!StartsNumber()) return Skip();
  Number number;
  if (!TakeNumber(&number)) return false;
  if (number.is_integer) *id = number.digits;
  return true;
}

bool EventScanner::TakeArg(absl::string_view key, ParsedEvent* event) {
  if (Next() == '"') {
    absl::string_view text;
    if (!Text(&text)) return false;
    event->args.push_back({key, text});
    return true;
  }
  if (!StartsNumber()) return Skip();
  Number number;
  if (!TakeNumber(&number)) return false;
  const double real = number.is_integer ? 0 : RealOf(number.digits);
  if (number.is_integer) {
    event->args.push_back({key, number.integer});
  } else if (std::isfinite(real)) {
    event->args.push_back({key, real});
  }
  return true;
}

std::optional<int64_t> TimeOf(absl::string_view number) {
  if (number.find_first_of("eE") != absl::string_view::npos) {
    const double time_us = RealOf(number);
    if (!(std::abs(time_us) <= static_cast<double>(kLatestTimeUs))) {
      return std::nullopt;
    }
    return std::llround(time_us * 1000);
  }
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
