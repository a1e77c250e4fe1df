#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "launcher/base/subprocess.h"

namespace ptrain::cluster {

// What the nvidia-smi of PATH answers to this --query-gpu, as csv,noheader,nounits: a line a GPU.
// None where there is no such program. One that hangs, as a lost GPU may let it for ever, is
// killed: an error (kEnvironment).
inline constexpr std::chrono::seconds kNvidiaPatience{10};
std::optional<Result<base::Finished>> ask_nvidia_smi(
    std::string_view query, std::chrono::seconds patience = kNvidiaPatience);

// Of one that has ended otherwise than with 0: "nvidia-smi fails with code 9: " and its first
// words.
std::string failure_of_nvidia_smi(const base::Finished& finished);

// Takes what is before the separator, without blanks around it.
std::string_view take_field(std::string_view& text, char separator);

}  // namespace ptrain::cluster
