#include "engine/train/trace.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/base/engine_error.h"

namespace ptrain::train {
namespace {

using nlohmann::json;

constexpr std::string_view kEnd = "\n]\n";

json name_of(const char* what, int rank, int row, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}};
}

}  // namespace

Trace::Trace(execute::Executor& executor, const std::string& path, int rank, std::int64_t num_steps)
    : executor_(executor), rank_(rank), steps_left_(num_steps), path_(path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  file_.open(path, std::ios::trunc);
  file_ << "[";
  name_rows();
  end_file();
  executor_.observe(
      [this](const program::Action& action, bool begins) { observe(action, begins); });
}

Trace::~Trace() { executor_.observe(nullptr); }

void Trace::name_rows() {
  append(name_of("process_name", rank_, 0, fmt::format("rank {}", rank_)).dump());
  using enum program::Lane;
  for (const auto lane : {kCompute, kGather, kReduce, kTransfer, kCopyOut, kCopyIn})
    append(
        name_of("thread_name", rank_, static_cast<int>(lane), std::string(program::to_string(lane)))
            .dump());
}

void Trace::observe(const program::Action& action, bool begins) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (begins) {
    begun_[action.id] = {now, executor_.exchanged_bytes(action)};
    return;
  }
  spans_.push_back({&action, begun_[action.id], now});
  begun_.erase(action.id);
}

double Trace::microseconds(Clock::time_point time) const {
  using Micro = std::chrono::duration<double, std::micro>;
  return Micro(start_date_.time_since_epoch()).count() + Micro(time - start_).count();
}

void Trace::append(const std::string& event) {
  file_ << (is_empty_ ? "\n" : ",\n") << event;
  is_empty_ = false;
}

// The next event is written over the end.
void Trace::end_file() {
  file_ << kEnd;
  file_.flush();
  if (!file_)
    throw EngineError(ExitCode::kEnvironment, "cannot write the trace " + path_,
                      "make room for it, or set log.trace_steps to 0");
  file_.seekp(-static_cast<std::streamoff>(kEnd.size()), std::ios::end);
}

std::string Trace::event_of(const Span& span, std::int64_t step) const {
  json args{{"step", step}};
  if (span.begin.bytes > 0) args["bytes"] = span.begin.bytes;
  return json{{"ph", "X"},
              {"name", program::to_text(*span.action)},
              {"cat", program::to_string(span.action->kind)},
              {"pid", rank_},
              {"tid", static_cast<int>(span.action->lane)},
              {"ts", microseconds(span.begin.at)},
              {"dur", microseconds(span.end) - microseconds(span.begin.at)},
              {"args", std::move(args)}}
      .dump();
}

void Trace::step_done(std::int64_t step) {
  if (steps_left_ == 0) return;
  for (const Span& span : spans_) append(event_of(span, step));
  end_file();
  spans_.clear();
  if (--steps_left_ == 0) executor_.observe(nullptr);
}

}  // namespace ptrain::train
