#pragma once

#include <string>

#include "core/base/result.h"

namespace ptrain::start {

// IPv4 addresses as numbers, which need no names.

// Our address on the way to a host.
Result<std::string> address_towards(const std::string& host);

// Our address where nodes meet: of the interface with this name, or, where that is empty, on the
// way to the node. Errors (kEnvironment) tell which interfaces there are.
Result<std::string> meeting_address(const std::string& interface, const std::string& node);

// The name of our interface that has this address; empty: none has.
std::string interface_of(const std::string& address);

}  // namespace ptrain::start
