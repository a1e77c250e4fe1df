#pragma once

namespace ptrain {

// Bugs that the test build of the engine can have, one at a time, to show that the ordinary tests
// see them. tests/planted/ says which test must see which.
enum class Bug {
  kLocalDenominator,      // the loss is divided by the own rank's targets
  kClipsTheSum,           // the norm is clipped before it is divided by the targets
  kLocalClipNorm,         // the norm of the own shard only
  kDecayOnNorms,          // weight decay on every parameter
  kMissingReduction,      // replicas do not add their gradients
  kDoubleReduction,       // replicas add them twice
  kStaleGather,           // a gathered buffer keeps what lay there before
  kOverwrittenGradient,   // a micro-batch's gradient replaces the one before
  kTiedGradientLost,      // the embedding's gradient replaces the tied head's
  kStashKept,             // a stash is freed one layer too late
  kMaskLeak,              // attention sees the documents before its own
  kRecomputeWithoutTurn,  // recomputation forgets the rotary
  kNormedTwice,           // queries and keys that are made again go through their norm twice
  kHeadsNotSummed,        // of the query heads of one key head only the last gives a gradient
  kPaddingTrained,        // padding counts as a target
  kPositionsGoOn,         // positions do not start again at a document
  kInitByRank,            // initial values depend on the rank
  kOrderByRank,           // the order of documents depends on the rank
  kRowTwice,              // a resumed run starts one row early
  kAdamStepRestarts,      // the bias correction starts again at a resume
  kMomentNotRestored,     // the second moment is zero after a resume
  kSavedLate,             // a save behind training writes what training made of the state since
  kLearningRateLate,      // the learning rate of the step before
  kShardsSwapped,         // a checkpoint names the wrong rank's file for a shard
  kAttentionZeroed,       // attention adds nothing to the stream
  kOffloadLost,           // offloaded state is never written back
  kBiasOnEveryRank,       // each rank of the tensor axis adds the bias of what is summed over it
  kLocalVocabulary,       // the loss sees the own part of the vocabulary only
  kLossOnEveryRank,       // each rank of the tensor axis counts the loss that all of them know
  kKeyValueSumMissing,    // ranks that hold the same keys and values do not add their gradients
  kTensorSumMissing,      // tensor ranks do not add the gradients of what all of them hold
  kTiedSumMissing,        // a tied head's gradient does not reach the embedding's stage
  kNormOfCopies,          // the norm counts what several ranks hold as often as it is held
  kExpertsUntrained,      // routed experts get no gradient
  kRouterDetached,        // weights of experts give the router no gradient
  kIdleExpertSkipped,     // an expert that no token passed keeps the gradient that was there
  kCapacityOfBatch,       // experts' room is counted over all rows of a micro-batch
  kBalanceOfFirstRow,     // the balance loss takes the first row's loads for all rows
  kCapacityByRank,        // experts' room goes to the tokens of one rank after the other
  kBalanceOfOwnTokens,    // the balance loss counts the choices of the own tokens of a row only
  kRouterSumMissing,      // tensor ranks do not add the gradients of their routers
  kExpertRowsByRank,      // rows that come to experts lie rank by rank, not expert by expert
  kExpertPartsNotSummed,  // of ranks with columns of one expert only the first one's result counts
  kExpertsOverDense,      // replicas of dense parameters add up gradients of experts
  kExpertsCountedTwice,   // the norm counts experts on each of their replicas
  kSharedKeyLost,         // of the heads that share a key only the first gives it a gradient
  kLocalPositions,        // ranks that share rows count positions from their own first token
  kRingNotMerged,         // what comes around the ring is not in the sums of softmax
  kKeyCopiesNotSummed,    // of ulysses ranks with the same keys only one's gradient counts
  kQueuedOverwritten,     // BACKWARD_WEIGHT replaces what earlier micro-batches left
  kStashFreedAtInput,     // BACKWARD_INPUT frees what BACKWARD_WEIGHT still reads
  kSendsKept,             // streams that were sent are given back at the end of the step
  kMeanOfMeans,           // micro-batches weigh alike, however many targets they have
  kTargetsOfWholeRows,    // each rank of a row counts all of the row's targets
  kVocabularyRepeated,    // e to a logit is summed once for each rank of the tensor axis
  kNormWithoutExperts,    // the norm leaves experts out
  kHeadsInterleaved,      // neighbouring query heads read different heads of keys
  kTurnedBackLate,        // the norm of keys sees gradients before the rotary is turned back
  kRingGradientsLost,     // gradients of keys that go around the ring get lost on the way
  kFirstTargetDropped,    // the first target of a document is not learned
  kEndNotLearned,         // targets are masked by value, and the end of a document with them
  kRowLost,               // a resumed run starts one row late
  kCarriedLost,           // documents that a change of shape carries over get lost
  kExpertsStartAtZero,    // initial values of experts are zero
  kAuxiliaryDropped,      // balance and z losses are told, but give no gradient
  kRoutedAgain,           // recomputation chooses experts again, and otherwise
  kHeadPartsNotSummed,  // the last stage gets no gradient from the other stages' parts of the head
  kSpreadRowsNotLearned,  // rows of a spread embedding that other stages hold get no gradient
  kCount
};

// Whether this build has this bug now. The shipped module has none (no_faults.cc). It costs a call,
// so it has no place in the loops of kernels.
bool planted(Bug bug);

}  // namespace ptrain
