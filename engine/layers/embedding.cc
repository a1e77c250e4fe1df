#include "engine/kernels/embedding.h"

#include "engine/base/planted.h"
#include "engine/kernels/rows.h"
#include "engine/layers/layers.h"
#include "engine/layers/vocabulary_part.h"
#include "engine/layers/vocabulary_share.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

// Parameters: the table of tokens [V, H], and that of positions where the model has one. Keeps
// nothing: its backward needs tokens and positions only. A rank that has a part of the table looks
// up its tokens for all ranks; positions and scale are for those that have the stream, each for its
// own tokens.
class Embedding final : public Layer {
 public:
  explicit Embedding(const model::Architecture& architecture)
      : dtype_(architecture.dtype),
        hidden_(architecture.config.hidden_size),
        share_(architecture.embedding),
        vocabulary_(architecture.parameters[0]),
        scale_(architecture.decoder.embedding_scale),
        has_positions_(architecture.decoder.num_positions > 0 && share_.has_rows()) {}

  Task forward(const Context& context, Tensor, Tensor y) const override {
    if (share_.alone()) {
      kernels::gather_rows(context.parameters[0], context.batch.tokens, y);
    } else {
      std::vector<Buffer> buffers;
      const Tensor rows = rows_of_all(context, buffers);
      kernels::gather_rows(context.parameters[0], vocabulary_.own(context.batch.tokens), rows);
      co_await exchange(share_.sum(rows));
      if (!share_.has_rows()) co_return;
      copy_tensor(share_.own(rows), y);
    }
    if (scale_ != 1) kernels::scale(scale_, y);
    if (has_positions_) kernels::add_rows(context.parameters[1], positions(context), y);
  }

  Task recompute(const Context&) const override { co_return; }
  Task remake(const Context&) const override { co_return; }

  Task backward_input(const Context& context, std::span<const GradientTarget> gradients, Tensor dy,
                      std::vector<WeightProduct>&, std::vector<Buffer>&, LossSums&) const override {
    if (has_positions_) {
      begin_sum(gradients[1]);
      kernels::scatter_add_rows(dy, positions(context), gradients[1].tensor);
    }
    if (scale_ != 1 && share_.has_rows()) kernels::scale(scale_, dy);
    std::vector<Buffer> buffers;
    const Tensor whole = share_.alone() ? dy : rows_of_all(context, buffers);
    if (!share_.alone()) {
      if (share_.has_rows()) copy_tensor(dy, share_.own(whole));
      co_await exchange(share_.gather(whole));
    }
    if (planted(Bug::kSpreadRowsNotLearned) && !share_.has_rows()) co_return;
    begin_sum(gradients[0]);
    kernels::scatter_add_rows(whole, vocabulary_.own(context.batch.tokens), gradients[0].tensor);
  }

 private:
  Tensor rows_of_all(const Context& context, std::vector<Buffer>& buffers) const {
    return take_scratch(context.arena, dtype_, context.batch.num_tokens(), hidden_, buffers);
  }

  // Of the own tokens.
  std::span<const std::int32_t> positions(const Context& context) const {
    const std::int64_t tokens = context.batch.num_tokens();
    return std::span(context.batch.positions)
        .subspan(static_cast<std::size_t>(share_.first_row(tokens)),
                 static_cast<std::size_t>(share_.own_rows(tokens)));
  }

  DType dtype_;
  std::int64_t hidden_;
  VocabularyShare share_;
  VocabularyPart vocabulary_;
  double scale_;
  bool has_positions_;
};

}  // namespace

std::unique_ptr<Layer> make_embedding(const model::Architecture& architecture) {
  return std::make_unique<Embedding>(architecture);
}

}  // namespace ptrain::layers
