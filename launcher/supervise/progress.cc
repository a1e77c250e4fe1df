#include "launcher/supervise/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "launcher/base/printable.h"
#include "launcher/supervise/narrate.h"

namespace ptrain::supervise {

namespace {

constexpr int kBarWidth = 20;
constexpr int kUnknownWidth = 80;
constexpr double kSmoothing = 0.1;
constexpr std::chrono::milliseconds kRedraw{50};  // a quicker bar only costs the terminal's time

std::string short_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string bar(std::int64_t done, std::int64_t total) {
  const auto filled = total > 0 ? std::min<std::int64_t>(kBarWidth, done * kBarWidth / total) : 0;
  std::string text(static_cast<std::size_t>(filled), '#');
  text.resize(kBarWidth, '-');
  return "[" + text + "] ";
}

// At most `width` bytes, and no half character of UTF-8 at the end.
std::string cut(std::string text, std::size_t width) {
  if (text.size() <= width) return text;
  while (width > 0 && (static_cast<unsigned char>(text[width]) & 0xc0) == 0x80) --width;
  text.resize(width);
  return text;
}

int width_of(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnknownWidth;
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
  if (style.redraw) style.width = width_of(stream);
  return style;
}

std::string render(const run::StepDone& done, std::int64_t num_steps, double left_s,
                   const ProgressStyle& style) {
  std::string text =
      fmt::format("step {}/{} {}  loss {:.4f}  lr {:.1e}  {} tokens/s  MFU {:.1f}%  {}  {} left",
                  done.step, num_steps, printable(done.shape), done.loss, done.learning_rate,
                  short_number(done.tokens_per_s), 100 * done.mfu,
                  short_bytes(static_cast<double>(done.bytes_peak)), short_time(left_s));
  if (!style.redraw) return text + "\n";
  text = bar(done.step, num_steps) + text;
  // The last column stays free: a full line would wrap and could not be redrawn.
  text = cut(std::move(text), static_cast<std::size_t>(std::max(1, style.width - 1)));
  if (style.colour) text = "\x1b[36m" + text + "\x1b[0m";
  return "\r\x1b[K" + text;
}

Progress::Progress(std::FILE* stream, std::int64_t num_steps, std::int64_t every_steps)
    : stream_(stream),
      style_(style_of(stream)),
      num_steps_(num_steps),
      every_steps_(std::max<std::int64_t>(1, every_steps)) {}

void Progress::show(const run::StepDone& done) {
  pace_s_ = pace_s_ == 0 ? done.step_s : pace_s_ + kSmoothing * (done.step_s - pace_s_);
  const bool last = done.step == num_steps_;
  if (!last && (style_.redraw ? !redraw_is_due() : done.step % every_steps_ != 0 && told_)) return;
  told_ = true;
  const double left_s = static_cast<double>(num_steps_ - done.step) * pace_s_;
  const std::string text = render(done, num_steps_, left_s, style_);
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
  drawn_ = style_.redraw;
}

bool Progress::redraw_is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - drawn_at_ < kRedraw) return false;
  drawn_at_ = now;
  style_.width = width_of(stream_);  // windows are resized
  return true;
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
