#include "pdu/packer.h"

#include <cstring>

namespace sluice::pdu {

// Copies the last piece behind what is packed before it, or into a packing buffer of its own.
void Packer::pack(std::vector<Slice>& pieces) {
  Slice& last = pieces.back();
  if (last.size <= room_) {
    Slice& packed = pieces[pieces.size() - 2];
    std::memcpy(packed.data + packed.size, last.data, last.size);
    packed.size += last.size;
    room_ -= last.size;
    pieces.pop_back();
    return;
  }
  room_ = 0;
  // Lent memory does not belong to a pool, so there is nothing to save.
  BufferPool* pool = last.owner ? last.owner.get()->pool : nullptr;
  if (!pool) return;
  // When the pool is spent the piece stays where it is: no more can come in than the buffers that
  // wait in the receive ring, and then connections starve as they do without packing.
  BufferRef buffer = pool->allocate(limits::kPackingBuffer);
  if (!buffer) return;
  std::memcpy(buffer.data(), last.data, last.size);
  room_ = buffer.capacity() - last.size;
  last.data = buffer.data();
  last.owner = std::move(buffer);
}

}  // namespace sluice::pdu
