#include "timeline/read/trace_event_parser.h"

#include <utility>

#include "absl/strings/match.h"
#include "timeline/read/event_scanner.h"

namespace hvdlite::timeline {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Whether the '{' at `at` begins an event: it is first in its line (except
// commas and blanks), or follows a '}' and a comma.
bool BeginsEvent(absl::string_view text, size_t at) {
  bool comma = false;
  while (at > 0) {
    const char c = text[--at];
    if (c == '\n') return true;
    if (c == '}') return comma;
    if (c == ',') {
      comma = true;
    } else if (!IsBlank(c)) {
      return false;
    }
  }
  return false;
}

// The first byte at or after `from` that begins an event; the text's size if
// there is none.
size_t FindEventStart(absl::string_view text, size_t from) {
  while (true) {
    from = text.find('{', from);
    if (from == absl::string_view::npos) return text.size();
    if (BeginsEvent(text, from)) return from;
    ++from;
  }
}

class Parser {
 public:
  Parser(absl::string_view text,
         const std::function<void(const ParsedEvent&)>& consume,
         const std::function<void(const TraceDamage&)>& on_damage)
      : text_(text), scanner_(text), consume_(consume), on_damage_(on_damage) {}

  ParseReport Run() {
    if (ReadHead()) {
      while (ReadValue()) {
      }
    }
    return std::move(report_);
  }

 private:
  // Functions that return a bool return whether to continue reading, in the
  // array of events.

  // Reads up to the first event.
  bool ReadHead() {
    if (absl::StartsWith(text_, "\xef\xbb\xbf")) scanner_.MoveTo(3);
    if (scanner_.Take('{')) {
      is_object_ = true;
      if (scanner_.Take('}')) return Close(scanner_.position());
      while (true) {
        absl::string_view key;
        if (!scanner_.Text(&key) || !scanner_.Take(':')) {
          return GoOnAfterDamage("before its events");
        }
        if (key == "traceEvents" && scanner_.Next() == '[') break;
        if (!scanner_.Skip()) return GoOnAfterDamage("before its events");
        if (scanner_.Take('}')) return Close(scanner_.position());
        if (!scanner_.Take(',')) return GoOnAfterDamage("before its events");
      }
    }
    if (!scanner_.Take('[')) return GoOnAfterDamage("before its events");
    read_ = report_.last_event_end = scanner_.position();
    if (is_object_) report_.head = text_.substr(0, read_);
    return true;
  }

  // Reads an event, or another element of the array, and the comma after it.
  bool ReadValue() {
    const char next = scanner_.Next();
    if (scanner_.at_end()) return false;
    if (next == ']') return ReadTail();
    if (next != '{') {
      if (!scanner_.Skip()) return GoOnAfterDamage("between its events");
    } else if (!scanner_.Event(&event_)) {
      report_.cut_off = scanner_.at_end();
      return GoOnAfterDamage("within an event");
    } else {
      ++report_.events;
      read_ = report_.last_event_end = scanner_.position();
      consume_(event_);
    }
    if (scanner_.Take(',') || scanner_.Next() == ']') return true;
    return GoOnAfterDamage("between its events");
  }

  // Reads from the ']' on.
  bool ReadTail() {
    const size_t tail = scanner_.position();
    scanner_.Take(']');
    while (is_object_ && scanner_.Take(',')) {
      absl::string_view key;
      if (!scanner_.Text(&key) || !scanner_.Take(':') || !scanner_.Skip()) {
        return GoOnAfterDamage("after its events");
      }
    }
    if (is_object_ && !scanner_.Take('}')) {
      return GoOnAfterDamage("after its events");
    }
    return Close(tail);
  }

  // The text is JSON up to the scanner's position. Zeros may follow: file
  // systems pad files that they could not write.
  bool Close(size_t tail) {
    report_.closed = true;
    scanner_.Next();
    const size_t end = scanner_.position();
    report_.tail = text_.substr(tail, end - tail);
    constexpr absl::string_view kPadding("\0 \t\r\n", 5);
    const size_t more = text_.find_first_not_of(kPadding, end);
    if (more == absl::string_view::npos) return false;
    const size_t next = FindEventStart(text_, more);
    // After damage, it is unknown which array ended.
    if (next == text_.size() && report_.damaged_places > 0) return false;
    if (report_.last_event_end > 0) read_ = end;  // the array had events
    report_.closed = next == text_.size();
    return NoteDamage(more, next, "after its end");
  }

  // The scanner has reached a wrong byte or the end of the text.
  bool GoOnAfterDamage(const char* reason) {
    if (scanner_.at_end()) return false;
    const size_t at = scanner_.position();
    const bool is_start = at > 0 && text_[at] == '{';
    return NoteDamage(at, is_start ? at : FindEventStart(text_, at), reason);
  }

  bool NoteDamage(size_t at, size_t next, const char* reason) {
    if (report_.head.empty()) is_object_ = false;
    if (report_.damaged_places++ == 0) {
      report_.first_damage_byte = at;
      report_.first_damage = reason;
    }
    if (on_damage_) {
      on_damage_({.begin = read_, .end = next, .at = at, .reason = reason});
    }
    read_ = next;
    scanner_.MoveTo(next);
    return next < text_.size();
  }

  const absl::string_view text_;
  EventScanner scanner_;
  const std::function<void(const ParsedEvent&)>& consume_;
  const std::function<void(const TraceDamage&)>& on_damage_;
  size_t read_ = 0;  // end of the last event or damage
  bool is_object_ = false;
  ParsedEvent event_;
  ParseReport report_;
};

}  // namespace

void ParsedEvent::Clear() {
  std::vector<ParsedArg> kept = std::move(args);
  kept.clear();
  *this = ParsedEvent();
  args = std::move(kept);
}

ParseReport ParseTraceEvents(
    absl::string_view text,
    const std::function<void(const ParsedEvent&)>& consume,
    const std::function<void(const TraceDamage&)>& on_damage) {
  return Parser(text, consume, on_damage).Run();
}

}  // namespace hvdlite::timeline
