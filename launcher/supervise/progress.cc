#include "launcher/supervise/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ptrain::supervise {

namespace {

constexpr int kBarWidth = 20;
constexpr double kSmoothing = 0.1;

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

std::string short_bytes(std::int64_t bytes) {
  const double mebi = static_cast<double>(bytes) / (1 << 20);
  return mebi >= 1024 ? fmt::format("{:.1f} GiB", mebi / 1024) : fmt::format("{:.0f} MiB", mebi);
}

std::string short_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

// A shape's name comes from a recipe: bytes that steer a terminal are shown as '?'.
std::string printable(std::string text) {
  std::ranges::replace_if(text, [](char c) { return (c >= 0 && c < ' ') || c == 127; }, '?');
  return text;
}

std::string bar(std::int64_t done, std::int64_t total) {
  const auto filled = total > 0 ? std::min<std::int64_t>(kBarWidth, done * kBarWidth / total) : 0;
  std::string text(static_cast<std::size_t>(filled), '#');
  text.resize(kBarWidth, '-');
  return "[" + text + "] ";
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

ProgressStyle style_of(std::FILE* stream) {
  ProgressStyle style;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  style.redraw = ::isatty(::fileno(stream)) == 1 && !dumb && !is_set("CI");
  style.colour = style.redraw && !is_set("NO_COLOR");
  winsize size{};
  if (style.redraw && ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = size.ws_col;
  return style;
}

std::string render(const run::StepDone& done, std::int64_t num_steps, double left_s,
                   const ProgressStyle& style) {
  std::string text = fmt::format(
      "step {}/{} {}  loss {:.4f}  lr {:.1e}  {} tokens/s  MFU {:.1f}%  {}  {} left", done.step,
      num_steps, printable(done.shape), done.loss, done.learning_rate,
      short_number(done.tokens_per_s), 100 * done.mfu, short_bytes(done.bytes_peak),
      short_time(left_s));
  if (!style.redraw) return text + "\n";
  text = bar(done.step, num_steps) + text;
  // The last column stays free: a full line would wrap and could not be redrawn.
  text.resize(std::min(text.size(), static_cast<std::size_t>(std::max(1, style.width - 1))));
  if (style.colour) text = "\x1b[36m" + text + "\x1b[0m";
  return "\r\x1b[K" + text;
}

Progress::Progress(std::FILE* stream, std::int64_t num_steps, std::int64_t every_steps)
    : stream_(stream), style_(style_of(stream)), num_steps_(num_steps),
      every_steps_(std::max<std::int64_t>(1, every_steps)) {}

void Progress::show(const run::StepDone& done) {
  pace_s_ = pace_s_ == 0 ? done.step_s : pace_s_ + kSmoothing * (done.step_s - pace_s_);
  if (!style_.redraw && done.step % every_steps_ != 0 && done.step != num_steps_) return;
  const double left_s = static_cast<double>(num_steps_ - done.step) * pace_s_;
  const std::string text = render(done, num_steps_, left_s, style_);
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
  drawn_ = style_.redraw;
}

void Progress::say(const std::string& line) {
  if (drawn_) std::fputs("\r\x1b[K", stream_);
  drawn_ = false;
  std::fprintf(stream_, "%s\n", printable(line).c_str());
  std::fflush(stream_);
}

void Progress::finish() {
  if (drawn_) std::fputc('\n', stream_);
  drawn_ = false;
}

}  // namespace ptrain::supervise
