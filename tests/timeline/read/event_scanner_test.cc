#include "timeline/read/event_scanner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

std::string Describe(const ParsedEvent& event) {
  std::string text = absl::StrCat(
      std::string(1, event.phase), " ", event.name, " ", event.pid, "/",
      event.tid, " ",
      event.start_ns.has_value() ? absl::StrCat(*event.start_ns) : "none", "+",
      event.duration_ns, event.has_bad_duration ? " bad" : "");
  if (!event.id.empty()) absl::StrAppend(&text, " id=", event.id);
  for (const ParsedArg& arg : event.args) {
    absl::StrAppend(&text, " ", arg.key, "=");
    std::visit([&](const auto& value) { absl::StrAppend(&text, value); },
               arg.value);
    absl::StrAppend(&text, "#", arg.value.index());
  }
  return text;
}

// Returns "" if `text` is not an event.
std::string Scanned(const std::string& object) {
  EventScanner scanner(object);
  ParsedEvent event;
  if (!scanner.Event(&event)) return "";
  EXPECT_EQ(event.text, object);
  return Describe(event);
}

TEST(EventScannerTest, ReadsChromesFormat) {
  const std::vector<std::pair<std::string, std::string>> objects = {
      {R"({"ph":"X"})", "X  0/0 none+0"},
      {R"({"ts":12.345,"dur":1.000,"ph":"X","name":"a","pid":0,"tid":10})",
       "X a 0/10 12345+1000"},
      {R"({ "ts": -12.3456, "dur":-1, "ph":"X", "pid":-3, "tid":0 })",
       "X  -3/0 -12346+0 bad"},
      {R"({"ts":1e3,"dur":25e-4,"ph":"X"})", "X  0/0 1000000+3"},
      {R"({"ts":"1","dur":"","ph":["X"],"name":5,"pid":1.5,"tid":null})",
       std::string(1, '\0') + "  0/0 none+0"},
      {R"({"ts":999999999999999999.5,"dur":1e999,"ph":"X"})",
       "X  0/0 none+0 bad"},
      {R"({"ts":12345678901234567890,"ph":"i","id":12,"cat":{"ts":1}})",
       "i  0/0 none+0 id=12"},
      {R"({"pid":"7","tid":"rank","ph":"i","id":"0x1"})",
       "i  7/-1 none+0 id=0x1"},
      {R"({"ph":"M","name":"\u00fc\n\"\ud83d\ude00","args":{"n\u0061":"\/"}})",
       "M \xc3\xbc\n\"\xf0\x9f\x98\x80 0/0 none+0 na=/#2"},
      {"{\"ph\":\"M\",\"name\":\"\xc3\xbc\xe2\x82\xac\"}",
       "M \xc3\xbc\xe2\x82\xac 0/0 none+0"},
      {R"({"ph":"C","args":{"a":1,"b":-0.5,"c":"d","e":null,"f":[{"g":1}]}})",
       "C  0/0 none+0 a=1#0 b=-0.5#1 c=d#2"},
      {R"({"ph":"C","args":{"a":1e2,"b":1e999,"c":1e-999}})",
       "C  0/0 none+0 a=100#1 c=0#1"},
      {R"({"ph":"C","args":{"a":12345678901234567890}})",
       "C  0/0 none+0 a=1.23457e+19#1"}};
  for (const auto& [object, described] : objects) {
    EXPECT_EQ(Scanned(object), described) << object;
  }
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(Scanned("{\"ph\":\"X\",\"a\":" + deep + "}"), "X  0/0 none+0");
  EXPECT_EQ(Scanned("{\"a\":" + deep + "]}"), "");
  const std::string too_deep(100'000, '[');
  EXPECT_EQ(Scanned("{\"a\":" + too_deep), "");
}

TEST(EventScannerTest, StringsInsteadOfNumbersStayDistinct) {
  EventScanner scanner(R"({"pid":"a"},{"pid":"b"},{"pid":"a"})");
  std::vector<int64_t> pids;
  ParsedEvent event;
  do {
    ASSERT_TRUE(scanner.Event(&event));
    pids.push_back(event.pid);
  } while (scanner.Take(','));
  EXPECT_EQ(pids, (std::vector<int64_t>{-1, -2, -1}));
}

TEST(EventScannerTest, ReadsEventsOfHvdlite) {
  std::string line;
  AppendEventLine(3,
                  {.name = "ALLREDUCE",
                   .track = 12,
                   .start_ns = 1'234'567,
                   .duration_ns = 89,
                   .args = {{"tensor", "layer.weight"},
                            {"bytes", int64_t{4096}},
                            {"late", 0.25}},
                   .flow = TraceEvent::Flow::kOut,
                   .flow_id = 7},
                  &line);
  EXPECT_EQ(Scanned(line.substr(0, line.size() - 2)),
            "X ALLREDUCE 3/12 1234567+89 tensor=layer.weight#2 bytes=4096#0 "
            "late=0.25#1");
}

TEST(EventScannerTest, AcceptsOnlyJson) {
  const std::string wrong_bytes(
      "{}[],:\"\\ \n\t\0\x1f\x7f\x80\xa0\xc1\xc3\xe0\xed\xf0\xf4\xff"
      "0159.-+eEtfnu/bd8",
      40);
  for (const std::string whole :
       {R"({"ts":-10.25,"dur":1.5E+3,"pid":0,"tid":[-0,10,{"a":[]}, {}]})",
        R"({"a":[true,false,null],"args":{"b":1e-7,"c":-1,"d":[[]]}})",
        R"({"name":"\u00fc\ud83d\ude00\n\\","args":{"\t":"\"\u0000"}})",
        "{\"name\":\"\xc3\xbc\xe0\xa4\xb9\xed\x9f\xbf\xf0\x90\x8d\x88\xf4\x8f"
        "\xbf\xbf\"}"}) {
    ASSERT_TRUE(nlohmann::json::accept(whole)) << whole;
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const char wrong : wrong_bytes) {
        std::string text = whole;
        text[at] = wrong;
        EventScanner scanner(text);
        ParsedEvent event;
        const bool taken =
            scanner.Event(&event) && scanner.Next() == '\0' && scanner.at_end();
        EXPECT_EQ(taken, nlohmann::json::accept(text)) << text;
      }
      // A text that ends too early is wrong at its end.
      EventScanner scanner(absl::string_view(whole).substr(0, at));
      ParsedEvent event;
      EXPECT_FALSE(scanner.Event(&event));
      EXPECT_TRUE(scanner.at_end()) << whole << " " << at;
    }
  }
}

TEST(EventScannerTest, TimesAreExact) {
  for (const auto& [number, time_ns] :
       std::vector<std::pair<const char*, std::optional<int64_t>>>{
           {"1700000000000000.123", 1700000000000000123},
           {"-0.001", -1},
           {"0.0004999", 0},
           {"0.0005", 1},
           {"0.9995", 1000},
           {"3000000000000000", 3'000'000'000'000'000'000},
           {"3000000000000000.001", std::nullopt},
           {"99999999999999999999999999", std::nullopt}}) {
    EXPECT_EQ(TimeOf(number), time_ns) << number;
  }
}

}  // namespace
}  // namespace hvdlite::timeline
