#pragma once

#include <string>
#include <vector>

namespace ptrain::cli {

// What `ptrain doctor` finds: of this machine, and in a Slurm job of its nodes.
struct Symptom {
  enum class Kind { kFine, kNote, kFailed };
  Kind kind = Kind::kFine;
  std::string part;  // "engine"
  std::string what;
  std::string remedy = {};
};

// Looks at all that starting ranks from here would need; takes a second or two.
std::vector<Symptom> examine();

// "ok      engine: /usr/lib/ptrain/libptrain_engine.so"
std::string to_text(const Symptom& symptom);

}  // namespace ptrain::cli
