#include "timeline/read/trace_event_parser.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "timeline/read/event_scanner.h"

namespace hvdlite::timeline {
namespace {

// Receives the tokens of any JSON and puts events together. Events are the
// objects at depth 1 of an array, or at depth 2 within an object's
// "traceEvents". Stops the parser after an event, and where events begin.
class EventBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  enum class Stop { kNone, kEventsBegin, kAfterEvent };

  // Forgets where in the text it is. Unless `within_events`, it stops where
  // events begin. `read` counts what the parser takes.
  void Restart(bool within_events, const size_t* read) {
    read_ = read;
    stop_ = Stop::kNone;
    stops_at_begin_ = !within_events;
    depth_ = 0;
    events_depth_ = 0;
    in_args_ = false;
  }

  ParsedEvent& event() { return event_; }
  size_t event_begin() const { return event_begin_; }  // of what was read
  Stop stop() const { return stop_; }
  bool is_in_object() const { return events_depth_ == 2; }
  bool at_end() const { return depth_ == 0; }
  bool within_event() const {
    return events_depth_ > 0 && depth_ > events_depth_;
  }
  size_t error_byte() const { return error_byte_; }
  const std::string& error() const { return error_; }

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (IsField() && key_ == "flow_in") event_.flow_in = value;
    if (IsField() && key_ == "flow_out") event_.flow_out = value;
    return true;
  }
  bool number_integer(number_integer_t value) override {
    return Integer(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMax = std::numeric_limits<int64_t>::max();
    if (value > static_cast<number_unsigned_t>(kMax)) {
      return Real(1e300, std::nullopt);
    }
    return Integer(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of("eE") == string_t::npos) {
      return Real(value, TimeOf(text));
    }
    const bool sane = std::abs(value) <= static_cast<double>(kLatestTimeUs);
    return Real(value, sane ? std::optional<int64_t>(std::llround(value * 1000))
                            : std::nullopt);
  }
  bool string(string_t& value) override {
    if (IsField()) {
      if (key_ == "ph") {
        event_.phase = value.empty() ? '\0' : value[0];
      } else if (key_ == "name") {
        event_.name = Keep(&value);
      } else if (key_ == "pid") {
        event_.pid = NumberOf(value);
      } else if (key_ == "tid") {
        event_.tid = NumberOf(value);
      } else if (key_ == "id") {
        event_.id = Keep(&value);
      } else if (key_ == "bind_id") {
        event_.bind_id = Keep(&value);
      }
    } else if (IsArg()) {
      event_.args.push_back({KeepKey(), Keep(&value)});
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& value) override {
    if (depth_ <= events_depth_ + 2) key_.swap(value);
    return true;
  }
  bool start_object(size_t) override {
    if (IsEventLevel()) {
      event_.Clear();
      texts_.clear();
      event_begin_ = *read_ - 1;
    }
    if (IsField()) in_args_ = key_ == "args";
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (IsField()) in_args_ = false;
    if (IsEventLevel()) stop_ = Stop::kAfterEvent;
    return stop_ == Stop::kNone;
  }
  bool start_array(size_t) override {
    if (depth_ == 0 ||
        (depth_ == 1 && events_depth_ == 0 && key_ == "traceEvents")) {
      events_depth_ = depth_ + 1;
      if (stops_at_begin_) stop_ = Stop::kEventsBegin;
    }
    if (IsField()) in_args_ = false;
    ++depth_;
    return stop_ == Stop::kNone;
  }
  bool end_array() override {
    --depth_;
    if (depth_ + 1 == events_depth_) {
      // Further arrays of the object are not events.
      events_depth_ = kNoEvents;
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    error_byte_ = position;
    // Without a place, which is not one of the file.
    error_ = error.what();
    const size_t reason = error_.find("syntax error");
    if (reason != std::string::npos) error_.erase(0, reason);
    return false;
  }

 private:
  static constexpr int kNoEvents = std::numeric_limits<int>::max() - 2;

  bool IsEventLevel() const {
    return events_depth_ > 0 && depth_ == events_depth_;
  }
  bool IsField() const {
    return events_depth_ > 0 && depth_ == events_depth_ + 1;
  }
  bool IsArg() const { return in_args_ && depth_ == events_depth_ + 2; }

  bool Integer(int64_t value) {
    if (IsField()) {
      if (key_ == "ts" || key_ == "dur") {
        const bool sane = value >= -kLatestTimeUs && value <= kLatestTimeUs;
        Time(sane ? std::optional<int64_t>(value * 1000) : std::nullopt);
      } else if (key_ == "pid") {
        event_.pid = value;
      } else if (key_ == "tid") {
        event_.tid = value;
      } else if (key_ == "id" || key_ == "bind_id") {
        std::string digits = std::to_string(value);
        (key_ == "id" ? event_.id : event_.bind_id) = Keep(&digits);
      }
    } else if (IsArg()) {
      event_.args.push_back({KeepKey(), value});
    }
    return true;
  }

  bool Real(double value, std::optional<int64_t> time_ns) {
    if (IsArg()) {
      event_.args.push_back({KeepKey(), value});
    } else if (IsField() && (key_ == "ts" || key_ == "dur")) {
      Time(time_ns);
    }
    return true;
  }

  void Time(std::optional<int64_t> time_ns) {
    if (key_ == "ts") {
      event_.start_ns = time_ns;
    } else if (!time_ns.has_value() || *time_ns < 0) {
      event_.has_bad_duration = true;
    } else {
      event_.duration_ns = *time_ns;
    }
  }

  // For as long as the event.
  absl::string_view Keep(std::string* text) {
    return texts_.emplace_back(std::move(*text));
  }
  absl::string_view KeepKey() { return texts_.emplace_back(key_); }

  int64_t NumberOf(const std::string& text) {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number)) return number;
    const auto next = -static_cast<int64_t>(text_numbers_.size()) - 1;
    return text_numbers_.emplace(text, next).first->second;
  }

  ParsedEvent event_;
  std::deque<std::string> texts_;  // that it points to
  const size_t* read_ = nullptr;
  size_t event_begin_ = 0;
  Stop stop_ = Stop::kNone;
  bool stops_at_begin_ = true;
  std::string key_;
  int depth_ = 0;
  int events_depth_ = 0;  // depth at which events start; 0: not known yet
  bool in_args_ = false;
  std::map<std::string, int64_t> text_numbers_;
  size_t error_byte_ = 0;
  std::string error_;
};

// `prefix` and then `text`, for the JSON parser; `read` is how much it took.
struct Source {
  absl::string_view prefix;
  absl::string_view text;
  size_t read = 0;
};

// Iterators over a source share its `read`: they are read once.
class SourceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit SourceIterator(Source* source) : source_(source) {}  // null: the end

  char operator*() const {
    const size_t at = source_->read;
    return at < source_->prefix.size()
               ? source_->prefix[at]
               : source_->text[at - source_->prefix.size()];
  }
  SourceIterator& operator++() {
    ++source_->read;
    return *this;
  }
  // Against the end alone.
  bool operator!=(const SourceIterator&) const {
    return source_->read < source_->prefix.size() + source_->text.size();
  }

 private:
  Source* source_;
};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Whether the '{' at `at` begins an event: it is the first of its line (commas
// and blanks apart), or follows a '}' and a comma.
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

// First byte at or after `from` that begins an event, or stands at `from`
// itself as a '{'; the text's size: there is none.
size_t FindEventStart(absl::string_view text, size_t from) {
  if (from > 0 && from < text.size() && text[from] == '{') return from;
  while (true) {
    from = text.find('{', from);
    if (from == absl::string_view::npos) return text.size();
    if (BeginsEvent(text, from)) return from;
    ++from;
  }
}

// Reads plain events by the scanner, and all else by the JSON parser, from the
// place that it has come to up to the end of the next event.
class Parser {
 public:
  Parser(absl::string_view text,
         const std::function<void(const ParsedEvent&)>& consume,
         const std::function<void(const TraceDamage&)>& on_damage)
      : text_(text), consume_(consume), on_damage_(on_damage) {}

  ParseReport Run() {
    while (ReadPlainEvents() && ReadAnything()) {
    }
    return std::move(report_);
  }

 private:
  // What the text before at_ amounts to.
  enum class Before { kNothing, kEventsBegin, kEvent };

  // Those of an array from at_ on. True: something else comes, or nothing.
  bool ReadPlainEvents() {
    if (before_ == Before::kNothing) return true;
    while (true) {
      size_t at = SkipBlanks(at_);
      if (before_ == Before::kEvent) {
        if (at == text_.size() || text_[at] != ',') return true;
        at_ = at + 1;
        before_ = Before::kEventsBegin;
        at = SkipBlanks(at_);
      }
      const size_t length = ScanEvent(text_.substr(at), &plain_event_);
      if (length == 0) return true;
      Consume(at, at + length, &plain_event_);
    }
  }

  // False: there is nothing more to read.
  bool ReadAnything() {
    const bool within_events = before_ != Before::kNothing;
    Source source = {.prefix = Prefix(), .text = text_.substr(at_)};
    builder_.Restart(within_events, &source.read);
    const bool whole = nlohmann::json::sax_parse(
        SourceIterator(&source), SourceIterator(nullptr), &builder_);
    const size_t end = at_ + source.read - source.prefix.size();
    if (whole) {
      Close(within_events, end);
      return false;
    }
    switch (builder_.stop()) {
      case EventBuilder::Stop::kEventsBegin:
        is_object_ = builder_.is_in_object();
        before_ = Before::kEventsBegin;
        at_ = end;
        report_.last_event_end = end;
        if (is_object_) report_.head = text_.substr(0, end);
        return true;
      case EventBuilder::Stop::kAfterEvent: {
        const size_t begin =
            at_ + builder_.event_begin() - source.prefix.size();
        Consume(begin, end, &builder_.event());
        return true;
      }
      case EventBuilder::Stop::kNone:
        return GoOnAfterDamage(
            at_ + std::max(builder_.error_byte(), source.prefix.size() + 1) -
            source.prefix.size() - 1);
    }
    return false;
  }

  // The text is JSON from at_ to `end`, which is its own, or a byte of zeros:
  // as files are padded that their system could not write.
  void Close(bool within_events, size_t end) {
    report_.closed = true;
    const size_t zeros = std::min(text_.find('\0', at_), end);
    const size_t tail = SkipBlanks(at_);
    if (within_events && tail < zeros && text_[tail] == ']') {
      report_.tail = text_.substr(tail, zeros - tail);
    }
    constexpr absl::string_view kPadding("\0 \t\r\n", 5);
    const size_t more = text_.find_first_not_of(kPadding, end);
    if (more == absl::string_view::npos) return;
    NoteDamage(end, text_.size(), more, "something follows its end");
  }

  void NoteDamage(size_t begin, size_t end, size_t at,
                  const std::string& reason) {
    if (report_.damaged_places++ == 0) {
      report_.first_damage_byte = at;
      report_.first_damage = reason;
    }
    if (on_damage_) {
      on_damage_({.begin = begin, .end = end, .at = at, .reason = reason});
    }
  }

  // `error_byte` ended parsing; the text's size if the text ran out.
  bool GoOnAfterDamage(size_t error_byte) {
    if (error_byte >= text_.size()) {
      report_.cut_off = builder_.within_event();
      return false;
    }
    // "...},]": the comma after the last event is no damage.
    const bool ends_array =
        text_[error_byte] == ']' && !builder_.within_event();
    const size_t next = FindEventStart(text_, error_byte);
    if (next >= text_.size() &&
        (ends_array || (report_.damaged_places > 0 && builder_.at_end()))) {
      report_.closed = true;
      return false;
    }
    NoteDamage(at_, next, error_byte, builder_.error());
    at_ = next;
    before_ = Before::kEventsBegin;
    return next < text_.size();
  }

  // What stands for the text before at_, with the JSON parser.
  absl::string_view Prefix() const {
    switch (before_) {
      case Before::kNothing:
        return "";
      case Before::kEventsBegin:
        return is_object_ ? "{\"traceEvents\":[" : "[";
      case Before::kEvent:
        return is_object_ ? "{\"traceEvents\":[\"\"" : "[\"\"";
    }
    return "";
  }

  size_t SkipBlanks(size_t at) const {
    while (at < text_.size() && IsBlank(text_[at])) ++at;
    return at;
  }

  void Consume(size_t begin, size_t end, ParsedEvent* event) {
    event->text = text_.substr(begin, end - begin);
    event->position = begin;
    at_ = end;
    before_ = Before::kEvent;
    ++report_.events;
    report_.last_event_end = end;
    consume_(*event);
  }

  const absl::string_view text_;
  const std::function<void(const ParsedEvent&)>& consume_;
  const std::function<void(const TraceDamage&)>& on_damage_;
  size_t at_ = 0;
  Before before_ = Before::kNothing;
  bool is_object_ = false;
  ParsedEvent plain_event_;
  EventBuilder builder_;
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
