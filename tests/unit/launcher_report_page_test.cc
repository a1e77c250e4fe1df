#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/base/plan_file.h"
#include "launcher/report/page.h"
#include "launcher/report/story.h"

namespace ptrain::report {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMebi = 1 << 20;

run::Plan planned() {
  run::Plan plan;
  plan.recipe.name = "<script>alert('x')</script>";
  recipe::Model& model = plan.recipe.model;
  model.hidden_size = 16;
  model.intermediate_size = 32;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 2;
  model.vocab_size = 320;
  plan.recipe.shapes.resize(2);
  plan.recipe.shapes[0].name = "short";
  plan.recipe.shapes[0].steps = 3;
  plan.recipe.shapes[1].name = "long";
  plan.recipe.shapes[1].steps = 2;
  for (auto& shape : plan.recipe.shapes) {
    shape.sequence = 8;
    shape.global_batch_tokens = 16;
  }
  plan.cluster = "two \"cores\" & more";
  plan.ranks = {{0, "a", 0, -1}, {1, "a", 1, -1}};
  for (const char* name : {"short", "long"}) {
    run::ShapePlan& shape = plan.shapes.emplace_back();
    shape.name = name;
    shape.layout.dp = 2;
    shape.predicted.step_s = 0.1;
    shape.predicted.low_s = 0.08;
    shape.predicted.high_s = 0.13;
    shape.predicted.tokens_per_s = 160;
    program::BytesByClass bytes{};
    bytes[static_cast<std::size_t>(program::MemoryClass::kParameters)] = Bytes{4 * kMebi};
    bytes[static_cast<std::size_t>(program::MemoryClass::kStash)] = Bytes{10 * kMebi};
    shape.predicted.classes = {{2, "hash", bytes}};
  }
  return plan;
}

std::string metric(int step, const char* shape, const std::string& loss, double step_s) {
  nlohmann::json json{{"attempt", 1},
                      {"step", step},
                      {"shape", shape},
                      {"grad_norm", 1.0},
                      {"learning_rate", 1e-3},
                      {"tokens_total", 16 * step},
                      {"step_s", step_s},
                      {"tokens_per_s", 16 / step_s},
                      {"bytes_peak", 15 * kMebi},
                      {"loss", nlohmann::json::parse(loss)}};
  return json.dump() + "\n";
}

std::string event(const std::string& kind, const std::string& fields) {
  return R"({"v":1,"time":"2026-01-02T03:04:05.000Z","mono_s":1.0,"attempt":1,"rank":0,"kind":")" +
         kind + "\"" + (fields.empty() ? "" : "," + fields) + "}\n";
}

// A span of a trace; microseconds.
std::string span(const std::string& name, const std::string& kind, int lane, int start, int lasts,
                 int step) {
  return fmt::format(R"({{"ph":"X","name":"{}","cat":"{}","pid":0,"tid":{},"ts":{},"dur":{},)"
                     R"("args":{{"step":{}}}}})",
                     name, kind, lane, start, lasts, step);
}

class Report : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "ptrain-report-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    directory_.root = folder_;
    fs::create_directories(directory_.attempt_folder(1));
    fs::create_directories(directory_.trace());
    ASSERT_TRUE(write_plan(directory_.plan(), planned()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) const {
    std::ofstream(path) << text;
  }
  Story story() const {
    auto story = read_story(directory_);
    EXPECT_TRUE(story) << story.error().message;
    return std::move(*story);
  }

  std::string folder_;
  run::Directory directory_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The last value of training that the legend of a chart says; empty where there is no such chart.
std::string last_of(const std::string& html, const std::string& chart) {
  const std::string before = "training: ", after = " at the end";
  const std::size_t title = html.find("<h3>" + chart);
  const std::size_t end = html.find("</figure>", title);
  if (title == html.npos || end == html.npos) return "";
  const std::string figure = html.substr(title, end - title);
  const std::size_t begin = figure.find(before);
  if (begin == figure.npos) return "";
  const std::size_t value = begin + before.size();
  return figure.substr(value, figure.find(after, value) - value);
}

TEST_F(Report, ShowsWhatWasPredictedOverWhatWasMeasured) {
  write(directory_.metrics(), metric(1, "short", "5.5", 9) + metric(2, "short", "5.25", 0.12) +
                                  metric(3, "short", "5.125", 0.11));
  write(directory_.events(),
        event("validation", R"("step":3,"loss":4.5)") +
            event("shape_finished",
                  R"("shape":"short","bytes":{"parameters":4194304,"stash":11534336})"));
  const std::string html = page(story());
  EXPECT_TRUE(has(html, "120.0 ms"));  // the median, not the slow first step
  EXPECT_TRUE(has(html, "+20.0 % (expected 80.0 ms to 130.0 ms)"));
  EXPECT_TRUE(has(html, ">exact<"));
  EXPECT_TRUE(has(html, ">+10.0 %<"));  // stash
  EXPECT_TRUE(has(html, "validation: 4.5 at the end"));
  EXPECT_TRUE(has(html, "training: 5.125 at the end"));
  EXPECT_EQ(last_of(html, "Learning rate"), "0.001");
  EXPECT_EQ(last_of(html, "Tokens/s"), "145");  // 16 / 0.11
  EXPECT_TRUE(has(html, "it was interrupted: there is no verdict"));
  EXPECT_TRUE(has(html, "3 of 5"));
  EXPECT_TRUE(has(html, "log.trace_steps was 0"));
  EXPECT_TRUE(has(html, "not measured"));  // the long shape never ran
}

TEST_F(Report, EscapesWhateverARunMaySay) {
  write(directory_.metrics(), metric(1, "<b>short", "5.5", 0.1));
  write(directory_.events(),
        event("warning", R"("message":"<img src=x onerror=alert(1)> \u001b[2J")"));
  write(directory_.trace(1, 0), "[" + span("</title><script>", "\\\"><script>", 0, 5, 3, 1) + "]");
  const run::Verdict verdict{ExitCode::kRankError, "</p><script>", "", 1, 0, 0, 1};
  write(directory_.verdict(), run::to_json(verdict).dump());
  const std::string html = page(story());
  EXPECT_TRUE(has(html, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
  EXPECT_FALSE(has(html, "<script"));
  EXPECT_FALSE(has(html, "<img"));
  EXPECT_FALSE(has(html, "<b>"));
  EXPECT_FALSE(has(html, "\x1b"));
  EXPECT_TRUE(has(html, "&lt;img src=x"));
  EXPECT_TRUE(has(html, "two &quot;cores&quot; &amp; more"));
  EXPECT_TRUE(has(html, "FAILED (10) &lt;/p&gt;"));
}

TEST_F(Report, LoadsNothingAndRunsNothing) {
  const std::string html = page(story());
  for (const char* word : {"http://", "https://", "src=", "href=", "@import", "url(", "<script"})
    EXPECT_FALSE(has(html, word)) << word;
  EXPECT_TRUE(has(html, "default-src 'none'"));
  EXPECT_EQ(count(html, "Nothing of it was written down."), 4u);
}

TEST_F(Report, SkipsAndCountsDamagedLines) {
  write(directory_.metrics(),
        metric(1, "short", "5.5", 0.1) + "{\"step\": 2, \"lo\n\n[3]\n{\"step\":\"x\"}\n" +
            metric(2, "short", "null", 0.1) + R"({"step":3,"loss":1e305,"learning_rate":-1e308})" +
            "\n" + R"({"attempt":1,"st)");
  write(directory_.events(), event("no_such_kind", "") + event("validation", R"("loss":"x")") +
                                 R"({"v":1,"kind":"warn)");
  const Story read = story();
  EXPECT_EQ(read.steps.size(), 3u);
  EXPECT_EQ(read.damaged_metrics, 5);  // torn, empty, a list, a step of text, torn at the end
  EXPECT_EQ(read.events.size(), 1u);
  EXPECT_EQ(read.damaged_events, 2);
  const std::string html = page(read);
  EXPECT_TRUE(has(html, "5 damaged lines of metrics.jsonl are left out."));
  EXPECT_TRUE(has(html, "2 damaged lines of events.jsonl are left out."));
  EXPECT_FALSE(has(html, "nan"));
  EXPECT_FALSE(has(html, "inf%"));
}

TEST_F(Report, DrawsTheLastTracedStepOfTheNewestTrace) {
  fs::create_directories(directory_.attempt_folder(2));  // has no trace
  const std::string spans =
      R"([{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0"}},)" +
      span("first", "FORWARD", 0, 1000, 500, 1) + "," +
      span("0 compute FORWARD l0 m0", "FORWARD", 0, 5000, 2000, 2) + "," +
      span("1 reduce REDUCE_GRAD g0", "REDUCE_GRAD", 2, 7000, 1000, 2) + "," +
      span("odd lane", "FORWARD", 77, 7000, 1000, 2) + "]";
  write(directory_.trace(1, 0), spans);
  write(directory_.trace(1, 1), "[{\"ph\":");
  Story read = story();
  ASSERT_EQ(read.traced.ranks.size(), 1u);
  EXPECT_EQ(read.traced.attempt, 1);
  EXPECT_EQ(read.traced.step, 2);
  EXPECT_EQ(read.traced.unreadable, 1);
  ASSERT_EQ(read.traced.ranks[0].spans.size(), 2u);
  EXPECT_NEAR(read.traced.ranks[0].spans[1].start_s, 2e-3, 1e-9);  // on the step's own clock
  read.predicted.spans = {{0, "FORWARD", "0 compute FORWARD l0 m0", 0, 1e-3}};
  read.predicted.figures = "figures of a test";
  const std::string html = page(read);
  EXPECT_TRUE(has(html, "Rank 0, predicted: 1.0 ms"));
  EXPECT_TRUE(has(html, "Rank 0, measured: 3.0 ms"));
  EXPECT_TRUE(has(html, "+100.0 %"));  // FORWARD: 2 ms for 1 ms
  EXPECT_TRUE(has(html, "Predicted with figures of a test"));
  EXPECT_TRUE(has(html, "1 files of trace/ cannot be read."));
}

TEST_F(Report, ALongRunIsThinnedButKeepsItsSpikes) {
  std::string lines;
  for (int step = 1; step <= 20000; ++step)
    lines += metric(step, "short", step == 7777 ? "99.5" : "2.5", 0.1);
  write(directory_.metrics(), lines);
  const std::string html = page(story());
  EXPECT_LT(html.size(), 200'000u);
  EXPECT_TRUE(has(html, "L388.8 0.0"));  // the spike, at the top: 1000 x 7776 / 19999
}

TEST_F(Report, ARunWithoutAPlanIsRefused) {
  fs::remove(directory_.plan());
  EXPECT_FALSE(read_story(directory_));
}

}  // namespace
}  // namespace ptrain::report
