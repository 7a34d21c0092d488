// The bytes of a command: from the initiator, to it, and as vectors for a backend.
#include <algorithm>
#include <cstring>

#include "commands/handler.h"

namespace sluice::lun {

bool allocate_data_in(Command& command, uint64_t length) {
  BufferPool& pool = *command.nexus->reactor_context().buffers;
  command.data_in.clear();
  command.iov.clear();
  while (length > 0) {
    const auto size = static_cast<uint32_t>(std::min<uint64_t>(length, BufferPool::kLargest));
    BufferRef buffer = pool.allocate(size);
    if (!buffer) {
      command.data_in.clear();
      command.iov.clear();
      return false;
    }
    uint8_t* data = buffer.data();
    command.iov.push_back({data, size});
    command.data_in.push_back({std::move(buffer), data, size});
    length -= size;
  }
  return true;
}

void finish_data(Command& command, ByteView data, uint32_t allocation_length) {
  const size_t size = std::min<size_t>(data.size(), allocation_length);
  if (size > 0 && !allocate_data_in(command, size)) {
    return finish_status(command, scsi::Status::kBusy);
  }
  size_t done = 0;
  for (const Slice& slice : command.data_in) {
    std::memcpy(slice.data, data.data() + done, slice.size);
    done += slice.size;
  }
  command.data_in_size = static_cast<uint32_t>(size);
  finish_good(command);
}

ByteView gather_data_out(Command& command) {
  const size_t size = command.data_out_size;
  if (size == 0) return {};
  if (command.data_out.front().size >= size) return {command.data_out.front().data, size};
  command.gathered.resize(size);
  size_t done = 0;
  for (const Slice& slice : command.data_out) {
    const size_t part = std::min<size_t>(slice.size, size - done);
    std::memcpy(command.gathered.data() + done, slice.data, part);
    done += part;
    if (done == size) break;
  }
  return {command.gathered.data(), done};
}

void vectors_from_data_out(Command& command, uint64_t skip, uint64_t length) {
  command.iov.clear();
  for (const Slice& slice : command.data_out) {
    if (length == 0) break;
    if (skip >= slice.size) {
      skip -= slice.size;
      continue;
    }
    const uint64_t part = std::min<uint64_t>(slice.size - skip, length);
    command.iov.push_back({slice.data + skip, part});
    length -= part;
    skip = 0;
  }
}

}  // namespace sluice::lun
