// Prevents small pieces of data from occupying their receive buffers (DESIGN R14): a buffer returns
// to its pool only when none of its bytes is referenced.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/limits.h"

namespace sluice::pdu {

// For one list of pieces. Large pieces are not copied. Neither is the last piece: often it is the
// only one, or the next bytes are received directly behind it.
class Packer {
 public:
  // Adds `piece` to `pieces`, which must be empty or filled by this function only.
  void add(std::vector<Slice>& pieces, Slice piece) {
    if (pieces.empty() || pieces.back().size >= limits::kPackedPiece) [[likely]] {
      room_ = 0;
    } else {
      pack(pieces);
    }
    pieces.push_back(std::move(piece));
  }

 private:
  void pack(std::vector<Slice>& pieces);

  // Free bytes behind the last piece but one, if that is in a packing buffer of this packer.
  uint32_t room_ = 0;
};

}  // namespace sluice::pdu
