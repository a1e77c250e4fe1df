#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// What a person is told of a run while it goes on, one text a line. Names and messages in it are
// escaped by whoever writes it out.

// Where the run lies, what each shape runs on, and, for who started it by hand, how to stop it.
std::vector<std::string> start_lines(const run::Plan& plan, const run::Directory& directory,
                                     bool by_hand);

// An event; none where it says nothing to a person.
std::vector<std::string> event_lines(run::EventKind kind, const nlohmann::json& fields);

// "2 ranks, each a replica; a step is 1 micro-batch of 6 rows a rank".
std::string in_words(const mesh::Layout& layout);

// "short: dp 2, long: shard 2"
std::string layouts_text(const run::Plan& plan);

// "12.3k", "1.50 GiB", "95 ms": for people, never for programs.
std::string short_number(double value);
std::string short_bytes(double bytes);
std::string short_duration(double seconds);

}  // namespace ptrain::supervise
