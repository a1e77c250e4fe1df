#include "engine/control/stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace ptrain::control {

namespace {

// Ignored unless someone asks for it, and used by none of the libraries that ranks load.
constexpr int kSignal = SIGURG;
constexpr int kMostFrames = 48;
constexpr std::size_t kMostThreads = 16;
constexpr std::chrono::milliseconds kTurn{30};  // of a thread to write

void write_frames(int) {
  const int error = errno;
  void* frames[kMostFrames];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, kMostFrames), STDERR_FILENO);
  errno = error;
}

std::vector<int> threads() {
  std::vector<int> found;
  DIR* folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    int thread = 0;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), thread);
    if (thread > 0 && thread != ::gettid()) found.push_back(thread);
  }
  ::closedir(folder);
  return found;
}

std::string line_of(int thread, const char* name) {
  std::ifstream file(fmt::format("/proc/self/task/{}/{}", thread, name));
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

void write_stacks() {
  void* frame[1];
  ::backtrace(frame, 1);  // loads what it needs: a handler must not
  struct sigaction action {};
  action.sa_handler = write_frames;
  action.sa_flags = SA_RESTART;
  ::sigaction(kSignal, &action, nullptr);
  std::size_t count = 0;
  for (const int thread : threads()) {
    if (count++ == kMostThreads) break;
    const std::string head =
        fmt::format("-- thread {} ({}), waits in {}, system call {}\n", thread,
                    line_of(thread, "comm"), line_of(thread, "wchan"), line_of(thread, "syscall"));
    std::fputs(head.c_str(), stderr);
    std::fflush(stderr);
    ::syscall(SYS_tgkill, ::getpid(), thread, kSignal);
    std::this_thread::sleep_for(kTurn);
  }
}

}  // namespace ptrain::control
