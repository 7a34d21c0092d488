// Keeps data that comes in small pieces from pinning the receive buffers they came in (DESIGN R14):
// a buffer stays away from its pool as long as one byte of it is referred to.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/limits.h"

namespace sluice::pdu {

// Of one list of pieces. Large ones stay where they are. The last stays, too, however small: often
// it is the only one, or the next bytes are received right behind it.
class Packer {
 public:
  // Adds `piece` to `pieces`, whose other pieces were added here, or which is empty.
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

  // Bytes free behind the last piece but one, if that is in a packing buffer, which is ours alone.
  uint32_t room_ = 0;
};

}  // namespace sluice::pdu
