#include "timeline/trace_event_parser.h"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace hvdlite::timeline {
namespace {

// Times beyond this (95 years) are no times; sums of two still fit.
constexpr int64_t kLatestTimeUs = 3'000'000'000'000'000;

// Receives the text's tokens and puts events together. Events are the objects
// at depth 1 of an array, or at depth 2 within an object's "traceEvents".
class EventBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventBuilder(const std::function<void(const ParsedEvent&)>& consume,
               ParseReport* report)
      : consume_(consume), report_(report) {}

  // Forgets where in the text it is.
  void Restart() {
    depth_ = 0;
    events_depth_ = 0;
    in_args_ = false;
  }

  bool at_end() const { return depth_ == 0; }
  bool within_event() const {
    return events_depth_ > 0 && depth_ > events_depth_;
  }
  size_t error_byte() const { return error_byte_; }
  const std::string& error() const { return error_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return Integer(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMax = std::numeric_limits<int64_t>::max();
    if (value > static_cast<number_unsigned_t>(kMax)) return Real(1e300);
    return Integer(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Real(value);
  }
  bool string(string_t& value) override {
    if (IsField()) {
      if (key_ == "ph") {
        event_.phase = value.empty() ? '\0' : value[0];
      } else if (key_ == "name") {
        event_.name.swap(value);
      } else if (key_ == "pid") {
        event_.pid = NumberOf(value);
      } else if (key_ == "tid") {
        event_.tid = NumberOf(value);
      }
    } else if (IsArg()) {
      event_.args.emplace_back(key_, std::move(value));
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& value) override {
    if (depth_ <= events_depth_ + 2) key_.swap(value);
    return true;
  }
  bool start_object(size_t) override {
    if (IsEventLevel()) event_ = ParsedEvent();
    if (IsField()) in_args_ = key_ == "args";
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (IsField()) in_args_ = false;
    if (IsEventLevel()) {
      ++report_->events;
      consume_(event_);
    }
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0 ||
        (depth_ == 1 && events_depth_ == 0 && key_ == "traceEvents")) {
      events_depth_ = depth_ + 1;
    }
    if (IsField()) in_args_ = false;
    ++depth_;
    return true;
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
    error_ = error.what();
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
      }
    } else if (IsArg()) {
      event_.args.emplace_back(key_, value);
    }
    return true;
  }

  bool Real(double value) {
    if (IsArg()) event_.args.emplace_back(key_, value);
    if (!IsField()) return true;
    if (key_ == "ts" || key_ == "dur") {
      const bool sane = std::abs(value) <= static_cast<double>(kLatestTimeUs);
      Time(sane ? std::optional<int64_t>(std::llround(value * 1000))
                : std::nullopt);
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

  int64_t NumberOf(const std::string& text) {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number)) return number;
    const auto next = -static_cast<int64_t>(text_numbers_.size()) - 1;
    return text_numbers_.emplace(text, next).first->second;
  }

  const std::function<void(const ParsedEvent&)>& consume_;
  ParseReport* const report_;
  ParsedEvent event_;
  std::string key_;
  int depth_ = 0;
  int events_depth_ = 0;  // depth at which events start; 0: not known yet
  bool in_args_ = false;
  std::map<std::string, int64_t> text_numbers_;
  size_t error_byte_ = 0;
  std::string error_;
};

// First byte at or after `from` that begins an event: a '{' that comes first on
// its line (commas and blanks apart), or stands at `from` itself.
size_t FindEventStart(absl::string_view text, size_t from) {
  if (from > 0 && from < text.size() && text[from] == '{') return from;
  while (true) {
    const size_t end_of_line = text.find('\n', from);
    if (end_of_line == absl::string_view::npos) return text.size();
    from = end_of_line + 1;
    size_t first = from;
    while (first < text.size() &&
           (text[first] == ',' || text[first] == ' ' || text[first] == '\t')) {
      ++first;
    }
    if (first < text.size() && text[first] == '{') return first;
  }
}

}  // namespace

int64_t NumberOf(const std::vector<TraceArg>& args, absl::string_view name,
                 int64_t fallback) {
  for (const auto& [key, value] : args) {
    const auto* number = std::get_if<int64_t>(&value);
    if (key == name && number != nullptr) return *number;
  }
  return fallback;
}

std::string TextOf(const std::vector<TraceArg>& args, absl::string_view name) {
  for (const auto& [key, value] : args) {
    const auto* text = std::get_if<std::string>(&value);
    if (key == name && text != nullptr) return *text;
  }
  return "";
}

ParseReport ParseTraceEvents(
    std::string* text, const std::function<void(const ParsedEvent&)>& consume) {
  ParseReport report;
  EventBuilder builder(consume, &report);
  size_t begin = 0;
  while (begin < text->size()) {
    builder.Restart();
    if (nlohmann::json::sax_parse(text->data() + begin,
                                  text->data() + text->size(), &builder)) {
      report.closed = true;
      return report;
    }
    // The byte that ended parsing; text->size() if the text ran out.
    const size_t error_byte =
        begin + std::max<size_t>(builder.error_byte(), 1) - 1;
    if (error_byte >= text->size()) {
      report.cut_off = builder.within_event();
      return report;
    }
    // "...},]": the comma after the last event is no damage.
    const bool ends_array =
        (*text)[error_byte] == ']' && !builder.within_event();
    const size_t next = FindEventStart(*text, error_byte);
    if (next >= text->size() &&
        (ends_array || (report.damaged_places > 0 && builder.at_end()))) {
      report.closed = true;
      return report;
    }
    if (report.damaged_places++ == 0) {
      report.first_damage_byte = error_byte;
      report.first_damage = builder.error();
    }
    if (next >= text->size()) return report;
    // Makes the rest an array of its own.
    (*text)[next - 1] = '[';
    begin = next - 1;
  }
  return report;
}

}  // namespace hvdlite::timeline
