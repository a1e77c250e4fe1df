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

// Parent of a process that is not a zombie; 0 otherwise.
int parent_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return 0;
  if (line[name_end + 2] == 'Z') return 0;
  int parent = 0;
  std::from_chars(line.data() + name_end + 4, line.data() + line.size(), parent);
  return parent;
}

std::map<int, int> parents_of_all() {
  std::map<int, int> parents;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return parents;
  while (const dirent* entry = ::readdir(folder)) {
    int pid = 0;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), pid);
    if (pid > 0) parents[pid] = parent_of(pid);
  }
  ::closedir(folder);
  return parents;
}

// But for `spare`, and for `apart` and all below it.
std::vector<int> descendants(int spare, int apart) {
  const auto parents = parents_of_all();
  std::vector<int> result;
  for (const auto& [pid, direct] : parents) {
    int parent = pid == apart ? 0 : direct;
    for (int depth = 0; depth < 64 && parent > 1 && parent != ::getpid(); ++depth) {
      if (parent == apart) break;
      const auto next = parents.find(parent);
      parent = next == parents.end() ? 0 : next->second;
    }
    if (parent == ::getpid() && pid != spare) result.push_back(pid);
  }
  return result;
}

// Takes away the zombies among our adopted children, but leaves `owned` and `apart` to their
// owners.
void reap(int owned, int apart) {
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
    if (info.si_pid == owned || info.si_pid == apart) return;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
}

}  // namespace

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
