#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/run/directory.h"
#include "core/run/event.h"

namespace ptrain::supervise {

// The only writer of events.jsonl and verdict.json. Events that cannot be written, as on a full
// disk, are kept and written before the next one that can.
class EventLog {
 public:
  explicit EventLog(const run::Directory& directory) : directory_(directory) {}

  void set_attempt(int attempt) { attempt_ = attempt; }
  Status write(run::EventKind kind, int rank = -1,
               nlohmann::json fields = nlohmann::json::object());
  // write() of several events at once: each is added, then all are flushed. What could not be
  // written is tried again with the next event that is added.
  void add(run::EventKind kind, int rank, nlohmann::json fields);
  Status flush();
  Status write(const run::Verdict& verdict);  // verdict.json, by rename

 private:
  run::Directory directory_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int attempt_ = 0;
  std::string unwritten_;
  bool has_new_ = false;  // since flush() was last tried
};

// Whole lines of an events.jsonl; a last line that is cut off is left out.
Result<std::vector<run::Event>> read_events(const std::string& path);
Result<run::Verdict> read_verdict(const std::string& path);

}  // namespace ptrain::supervise
