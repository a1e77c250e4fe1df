#include "launcher/supervise/processes.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace ptrain::supervise {

namespace {

struct Process {
  int parent = 0;
  bool is_zombie = false;
};

Process process_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return {};
  Process process{0, line[name_end + 2] == 'Z'};
  std::from_chars(line.data() + name_end + 4, line.data() + line.size(), process.parent);
  return process;
}

std::map<int, Process> all_processes() {
  std::map<int, Process> processes;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return processes;
  while (const dirent* entry = ::readdir(folder)) {
    int pid = 0;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), pid);
    if (pid > 0) processes[pid] = process_of(pid);
  }
  ::closedir(folder);
  return processes;
}

// Without zombies, `spare`, and `apart` and all below it.
std::vector<int> descendants(int spare, int apart) {
  const auto processes = all_processes();
  std::vector<int> result;
  for (const auto& [pid, process] : processes) {
    int parent = pid == apart || process.is_zombie ? 0 : process.parent;
    for (int depth = 0; depth < 64 && parent > 1 && parent != ::getpid(); ++depth) {
      if (parent == apart) break;
      const auto next = processes.find(parent);
      parent = next == processes.end() ? 0 : next->second.parent;
    }
    if (parent == ::getpid() && pid != spare) result.push_back(pid);
  }
  return result;
}

// Takes away the zombies among our adopted children, but leaves `owned` and `apart` to their
// owners. Waiting for any child would find such a one again and again, and none of the others.
void reap(int owned, int apart) {
  for (const auto& [pid, process] : all_processes())
    if (process.is_zombie && process.parent == ::getpid() && pid != owned && pid != apart)
      ::waitpid(pid, nullptr, WNOHANG);
}

bool has_variable(int pid, const std::string& variable) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  for (std::string one; std::getline(file, one, '\0');)
    if (one == variable) return true;
  return false;
}

}  // namespace

void kill_marked(const std::string& variable) {
  constexpr int kMostRounds = 10;  // one that forks meanwhile is found in the next
  for (int round = 0, found = 1; found > 0 && round < kMostRounds; ++round) {
    found = 0;
    for (const auto& [pid, process] : all_processes()) {
      if (process.is_zombie || pid == ::getpid() || !has_variable(pid, variable)) continue;
      ++found;
      ::kill(pid, SIGKILL);
    }
    if (found > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool kill_descendants(int owned, Owned what, std::chrono::milliseconds limit, int apart) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = descendants(what == Owned::kSpare ? owned : 0, apart);
    if (left.empty()) break;
    if (std::chrono::steady_clock::now() > end) return false;
    for (const int pid : left) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    reap(owned, apart);
  }
  reap(owned, apart);
  return true;
}

}  // namespace ptrain::supervise
