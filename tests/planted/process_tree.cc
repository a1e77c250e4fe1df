#include "tests/planted/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace ptrain::planted_test {
namespace {

struct Process {
  std::string name;
  int parent = 0;
};

Process process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto begin = line.find('('), end = line.rfind(')');
  if (begin == std::string::npos || end + 4 >= line.size()) return {};
  return {line.substr(begin + 1, end - begin - 1), std::atoi(line.c_str() + end + 4)};
}

std::map<int, Process> all_processes() {
  std::map<int, Process> all;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return all;
  while (const dirent* entry = ::readdir(folder))
    if (const int pid = std::atoi(entry->d_name); pid > 0) all[pid] = process(pid);
  ::closedir(folder);
  return all;
}

int supervisor(const std::map<int, Process>& all) {
  int root = ::getpid();
  for (int pid = root; all.contains(pid); pid = all.at(pid).parent) {
    const std::string& name = all.at(pid).name;
    if (pid != root && name != "ptrain" && name != "mpirun" && name != "orterun") break;
    root = pid;
  }
  return root;
}

bool lies_below(int pid, int root, const std::map<int, Process>& all) {
  for (int depth = 0; depth < 64 && all.contains(pid); ++depth, pid = all.at(pid).parent)
    if (pid == root) return true;
  return false;
}

}  // namespace

void kill_whole_run() {
  const auto all = all_processes();
  const int root = supervisor(all);
  std::vector<int> doomed{root};
  for (const auto& [pid, ignored] : all)
    if (pid != root && pid != ::getpid() && lies_below(pid, root, all)) doomed.push_back(pid);
  for (const int pid : doomed) ::kill(pid, SIGKILL);
  ::kill(::getpid(), SIGKILL);
  std::abort();  // not reached
}

}  // namespace ptrain::planted_test
