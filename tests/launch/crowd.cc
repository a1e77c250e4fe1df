// Plays srun and all of its ranks in one process, towards the real supervisor: each has a control
// connection of its own, says hello, then each second a heartbeat and an event, and at last
// goodbye.
//   crowd RANKS SECONDS REQUEST
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/run/control.h"
#include "core/run/request.h"

namespace {

using namespace ptrain;
using std::chrono::milliseconds;
constexpr int kTicks = 100;  // of a second

int connect_to(const run::Request& request) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(request.control_port));
  ::inet_pton(AF_INET, request.control_host.c_str(), &address.sin_addr);
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    std::exit(3);
  return file;
}

void say(int file, const run::ControlMessage& message) {
  const std::string line = run::to_line(message);
  if (::send(file, line.data(), line.size(), MSG_NOSIGNAL) != std::ssize(line)) std::exit(4);
}

void second_of(int file, int rank, int second) {
  say(file,
      run::Heartbeat{second, "step", "world all_reduce#7", rank % 2 == 0, 1 << 30, 1.0 * second});
  say(file, run::EventMessage{run::EventKind::kValidation, {{"of", rank}, {"second", second}}});
}

}  // namespace

int main(int, char** arguments) {
  const int num_ranks = std::atoi(arguments[1]), seconds = std::atoi(arguments[2]);
  std::ifstream text(arguments[3]);
  const auto request =
      run::request_from_json_text(std::string(std::istreambuf_iterator<char>(text), {}));
  if (!request) return 2;
  std::vector<int> files;
  for (int rank = 0; rank < num_ranks; ++rank) {
    files.push_back(connect_to(*request));
    say(files.back(), run::Hello{std::getenv("PTRAIN_CONTROL_TOKEN"), request->attempt, rank,
                                 1000 + rank, "node", "build"});
  }
  auto next = std::chrono::steady_clock::now();
  for (int tick = 0; tick < seconds * kTicks; ++tick) {
    for (int rank = tick % kTicks; rank < num_ranks; rank += kTicks)
      second_of(files[static_cast<std::size_t>(rank)], rank, tick / kTicks);
    if (tick % 10 == 0) {
      run::StepDone done{tick / 10 + 1, "short", 1};
      done.step_s = 0.1;
      say(files[0], done);
    }
    std::this_thread::sleep_until(next += milliseconds(1000 / kTicks));
  }
  for (const int file : files) {
    say(file, run::Goodbye{});
    ::close(file);
  }
  return 0;
}
