#include "launcher/start/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "launcher/base/descriptor.h"

namespace ptrain::start {

namespace {

std::string text_of(const in_addr& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address, text.data(), text.size());
  return text.data();
}

struct Interface {
  std::string name, address;
};

// Of this machine, with the IPv4 addresses that they have.
std::vector<Interface> interfaces_here() {
  std::vector<Interface> interfaces;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      interfaces.push_back(
          {one->ifa_name, text_of(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr)});
  return interfaces;
}

}  // namespace

// A datagram socket that is connected sends nothing, but knows its way.
Result<std::string> address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int status = ::getaddrinfo(host.c_str(), "9", &hints, &found); status != 0)
    return fail(ExitCode::kEnvironment,
                fmt::format("the node {} has no address here: {}", host, ::gai_strerror(status)),
                "start ptrain where the names of the nodes are known");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const base::Descriptor file(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in mine{};
  socklen_t size = sizeof mine;
  if (!file.is_open() || ::connect(file.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(file.get(), reinterpret_cast<sockaddr*>(&mine), &size) != 0)
    return fail(ExitCode::kEnvironment,
                fmt::format("there is no way to the node {}: {}", host, std::strerror(errno)));
  return text_of(mine.sin_addr);
}

Result<std::string> meeting_address(const std::string& interface, const std::string& node) {
  if (interface.empty()) return address_towards(node);
  std::string there;
  for (const auto& one : interfaces_here()) {
    if (one.name == interface) return one.address;
    there += fmt::format("{}{} ({})", there.empty() ? "" : ", ", one.name, one.address);
  }
  return fail(
      ExitCode::kEnvironment,
      fmt::format("cluster.interface: this machine has no '{}' with an IPv4 address", interface),
      "it has " + there);
}

std::string interface_of(const std::string& address) {
  for (const auto& one : interfaces_here())
    if (one.address == address) return one.name;
  return "";
}

}  // namespace ptrain::start
