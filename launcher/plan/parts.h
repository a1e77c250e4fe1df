#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/program/action.h"
#include "core/program/pipeline.h"
#include "launcher/plan/cost/context.h"
#include "launcher/plan/simulate.h"

namespace ptrain::plan {

// The model as one rank holds it. It stands for all ranks at its place along the pipeline: those
// run one program, and those of other places others.
struct Part {
  int rank = 0;
  model::Architecture architecture;
  std::vector<mesh::BufferPlan> buffers;
};

// The rank that stands for all at a place along the pipeline: of a ring that with the middle of
// rows, which is one piece and needs the most scratch.
int rank_at_place(const mesh::Layout& layout, int place);

// One for each place along the pipeline, from its start. Errors (kUsage): those of mesh::part_of.
Result<std::vector<Part>> parts_of(const model::Architecture& whole, const mesh::Layout& layout);

// How the work of a step is dealt out to them. Errors (kUsage): those of program::pipeline_of.
Result<program::Pipeline> pipeline_of(std::span<const Part> parts, const mesh::Layout& layout);

// The program of one of them; `pipeline`: of all. Errors (kUsage): those of program::compile.
Result<program::Program> compile_part(const Part& part, const mesh::Layout& layout,
                                      const program::Pipeline& pipeline, const std::string& shape);

// Their programs. Errors (kUsage): those of program::compile, among them a schedule that does not
// suit the layout.
Result<std::vector<program::Program>> compile_parts(std::span<const Part> parts,
                                                    const mesh::Layout& layout,
                                                    const std::string& shape);

struct ClockInput {
  std::span<const Part> parts;
  const mesh::Layout& layout;
  const cluster::Cluster& cluster;
  const Placement& placement;
  std::int64_t sequence = 0;
  AttentionLoad attention;
};

// A step of the parts' programs, which meet where the pipeline does.
Result<Timeline> run_on_clock(const ClockInput& input, std::span<const program::Program> programs);

}  // namespace ptrain::plan
