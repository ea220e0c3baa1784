// Events that are written plainly are read by a scanner, all others by a parser
// of all of JSON: both must tell the same.
#include "timeline/read/event_scanner.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

std::string Describe(const ParsedEvent& event) {
  std::string text = absl::StrCat(
      std::string(1, event.phase), " ", event.name, " ", event.pid, "/",
      event.tid, " ",
      event.start_ns.has_value() ? absl::StrCat(*event.start_ns) : "none", "+",
      event.duration_ns, event.has_bad_duration ? " bad" : "");
  for (const ParsedArg& arg : event.args) {
    absl::StrAppend(&text, " ", arg.key, "=");
    std::visit([&](const auto& value) { absl::StrAppend(&text, value); },
               arg.value);
    absl::StrAppend(&text, "#", arg.value.index());
  }
  return text;
}

// As the parser of all of JSON has it: an escape keeps the scanner off.
std::string Parsed(const std::string& object) {
  std::string description = "not parsed";
  ParseTraceEvents(
      absl::StrCat("[{\"unused\":\"\\u0041\",", object.substr(1), "]"),
      [&](const ParsedEvent& event) { description = Describe(event); });
  return description;
}

std::string Scanned(const std::string& object) {
  const std::string line = absl::StrCat(object, ",\n");
  ParsedEvent event;
  const size_t length = ScanEvent(line, &event);
  if (length == 0) return "not plain";
  EXPECT_EQ(event.text, object);
  return Describe(event);
}

TEST(EventScannerTest, TellsWhatTheParserTells) {
  for (const char* object :
       {R"({"ph":"X"})",
        R"({"ts":12.345,"dur":1.000,"ph":"X","name":"a","pid":0,"tid":10})",
        R"({"ts":-12.3456,"dur":-1,"ph":"X","name":"a","pid":-3,"tid":0})",
        R"({"ts":0.0005,"dur":0.00049,"ph":"X"})",
        R"({"ts":1.9996,"dur":-0.25,"ph":"X"})",
        R"({"ts":999999999999999999.5,"dur":1.5,"ph":"X"})",
        R"({"ts":1700000000000000.123,"dur":3000000000000000})",
        R"({"ts":3000000000000001,"dur":3000000000000000.1})",
        R"({ "ph": "B", "name": "", "ts": 100, "pid": 1 })",
        R"({"ph":"","name":"a","args":[1,"b"],"cat":null,"s":true})",
        R"({"ph":"C","args":{"a":1,"b":-0.5,"c":"d","e":null,"f":[{"g":1}]}})",
        R"({"ph":"M","args":{"name":"x","deep":{"name":"y","ts":1}}})",
        R"({"args":{"a":12345678901234567.5,"b":0.1,"c":0}})",
        "{\n  \"ph\": \"X\",\n  \"args\": {\n    \"a\": []\n  }\n}"}) {
    EXPECT_EQ(Scanned(object), Parsed(object)) << object;
  }
}

TEST(EventScannerTest, ReadsWhatHvdliteWrites) {
  std::string line;
  AppendEventLine(3,
                  {.name = "ALLREDUCE",
                   .lane = 12,
                   .start_ns = 1'234'567,
                   .duration_ns = 89,
                   .args = {{"tensor", "layer.weight"},
                            {"bytes", int64_t{4096}},
                            {"late", 0.25}},
                   .flow = TraceEvent::Flow::kOut,
                   .flow_id = 7},
                  &line);
  ParsedEvent event;
  EXPECT_EQ(ScanEvent(line, &event), line.size() - 2);
  EXPECT_EQ(Describe(event),
            "X ALLREDUCE 3/12 1234567+89 tensor=layer.weight#2 bytes=4096#0 "
            "late=0.25#1");
}

TEST(EventScannerTest, LeavesTheRestToTheParser) {
  for (const char* object : {"",
                             "[",
                             "{",
                             R"({"ph")",
                             R"({"ph":"X")",
                             R"({"ph":"X",})",
                             R"({"ph":"X"]})",
                             R"({"name":"\n"})",
                             "{\"name\":\"\xc3\xbc\"}",
                             "{\"name\":\"a\tb\"}",
                             R"({"name":5})",
                             R"({"ts":1e3})",
                             R"({"ts":01})",
                             R"({"ts":1.})",
                             R"({"ts":-})",
                             R"({"ts":.5})",
                             R"({"ts":+1})",
                             R"({"ts":1234567890123456789})",
                             R"({"ts":"1"})",
                             R"({"pid":"rank"})",
                             R"({"tid":1.5})",
                             R"({"a":tru})",
                             R"({"a":[1,]})",
                             R"({"a":{"b"}})",
                             R"({a:1})",
                             R"({"a":1 "b":2})"}) {
    EXPECT_EQ(Scanned(object), "not plain") << object;
  }
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(Scanned("{\"a\":" + deep + "}"), "not plain");
  EXPECT_EQ(Parsed("{\"ph\":\"X\",\"a\":" + deep + "}"), "X  0/0 none+0");
}

TEST(EventScannerTest, TimesAreExact) {
  EXPECT_EQ(TimeOf("1700000000000000.123"), 1700000000000000123);
  EXPECT_EQ(TimeOf("-0.001"), -1);
  EXPECT_EQ(TimeOf("0.0004999"), 0);
  EXPECT_EQ(TimeOf("0.9995"), 1000);
  EXPECT_EQ(TimeOf("3000000000000000.001"), std::nullopt);
  EXPECT_EQ(TimeOf("99999999999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace hvdlite::timeline
