#pragma once

#include <cstdint>

namespace ptrain::dcp {

// The pickle opcodes that checkpoints use; any other is refused.
enum class Op : std::uint8_t {
  kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kDup = '2',
  kProto = 0x80, kFrame = 0x95,
  kNone = 'N', kNewTrue = 0x88, kNewFalse = 0x89,
  kBinInt = 'J', kBinInt1 = 'K', kBinInt2 = 'M', kLong1 = 0x8a, kLong4 = 0x8b, kBinFloat = 'G',
  kBinUnicode = 'X', kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d,
  kBinString = 'T', kShortBinString = 'U',
  kBinBytes = 'B', kShortBinBytes = 'C', kBinBytes8 = 0x8e, kByteArray8 = 0x96,
  kEmptyTuple = ')', kTuple = 't', kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87,
  kEmptyList = ']', kList = 'l', kAppend = 'a', kAppends = 'e',
  kEmptyDict = '}', kSetItem = 's', kSetItems = 'u',
  kEmptySet = 0x8f, kAddItems = 0x90, kFrozenSet = 0x91,
  kPut = 'p', kBinPut = 'q', kLongBinPut = 'r', kMemoize = 0x94,
  kGet = 'g', kBinGet = 'h', kLongBinGet = 'j',
  kGlobal = 'c', kStackGlobal = 0x93, kReduce = 'R', kBuild = 'b',
  kNewObj = 0x81, kNewObjEx = 0x92, kBinPersId = 'Q',
};

}  // namespace ptrain::dcp
