#pragma once

#include <chrono>
#include <map>
#include <string>

#include "core/base/result.h"
#include "launcher/preflight/node_report.h"

namespace ptrain::preflight {

// Every node sends a few megabytes to the next one, over the interface at which the supervisor is
// reached; so a node that hears nothing, and a slow way, are found before ranks wait for each
// other.
//
// The supervisor's side: nodes say at which port they listen, and are told of their neighbour.
class RingHub {
 public:
  static Result<RingHub> open(const std::string& host, int num_nodes);
  ~RingHub();
  RingHub(RingHub&& other) noexcept;
  RingHub& operator=(RingHub&&) = delete;

  int port() const { return port_; }
  const std::string& token() const { return token_; }
  // Hears nodes for at most `wait`. Once all are there, or `close` is called, each is told of the
  // next.
  void poll(std::chrono::milliseconds wait);
  void close();

 private:
  struct Member {
    std::string node, host, unread;
    int port = 0;  // 0: has not said
  };
  RingHub(int listener, int port, std::string token, int num_nodes);
  void accept();
  void read(int file);

  int listener_;
  int port_;
  std::string token_;
  int num_nodes_;
  bool told_ = false;
  std::map<int, Member> members_;  // by file
};

// A node's side; fills in next_error and next_bytes_per_s. Takes a few seconds where neighbours do
// not answer.
void join_ring(const std::string& host, int port, const std::string& token, NodeReport& report);

}  // namespace ptrain::preflight
