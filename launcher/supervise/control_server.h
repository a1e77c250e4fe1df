#pragma once

#include <chrono>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/run/control.h"

namespace ptrain::supervise {

// The supervisor's side of the control connections: TCP at an address of this machine. A connection
// that does not begin with a Hello of the right token, attempt and a free rank is closed without a
// word. A machine that answers nothing, not even for a process that is stopped, is taken for lost
// after kNodeSilence.
class ControlServer {
 public:
  static constexpr std::chrono::seconds kNodeSilence{3};

  struct Gone {
    bool unreachable = false;  // the machine of the rank, not only the rank
  };
  struct Received {
    int rank = 0;
    std::variant<run::ControlMessage, Gone> what;
  };

  static Result<ControlServer> open(int attempt, int num_ranks,
                                    const std::string& host = "127.0.0.1");
  ~ControlServer();
  ControlServer(ControlServer&& other) noexcept;
  ControlServer& operator=(ControlServer&&) = delete;

  int port() const { return port_; }
  const std::string& token() const { return token_; }

  // Waits for news from ranks, or until one of the files in `wake` can be read, or for `timeout`.
  std::vector<Received> poll(std::chrono::milliseconds timeout, std::span<const int> wake);

  void send(int rank, const run::ControlMessage& message);  // rank -1: all

 private:
  struct Connection {
    int rank = -1;  // -1: no hello yet
    std::string unread;
  };

  ControlServer(int listener, int port, std::string token, int attempt, int num_ranks);
  bool watch(int file);
  void accept();
  void read(int file, std::vector<Received>& received);
  bool take_line(Connection& connection, std::string_view line, std::vector<Received>& received);
  bool welcome(Connection& connection, const run::ControlMessage& message);

  int listener_;
  int watched_;  // epoll of the listener and all connections: thousands of them cost no time
  int port_;
  int attempt_;
  int num_ranks_;
  std::string token_;                      // 128 random bits
  std::map<int, Connection> connections_;  // by file
  std::set<int> ranks_;                    // that said hello
};

}  // namespace ptrain::supervise
