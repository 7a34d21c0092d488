#include "passthrough/device_backend.h"

#include "backend/failure.h"
#include "passthrough/requests.h"

namespace sluice::passthrough {

bool DeviceBackend::submit(backend::Io& io, Aio& aio) {
  if (const auto refused = refuse(io, *this)) {
    io.result = *refused;
    return true;
  }
  // Nothing is ever only in the device's memory.
  if (io.op == backend::Op::kFlush && !volatile_cache_) {
    io.result = 0;
    return true;
  }
  return submit_to(channels_.of(aio), io);
}

void DeviceBackend::close(std::function<void()> closed) {
  {
    const std::lock_guard lock(control_);
    channels_.clear();
    claim_.release();
  }
  closed();
}

Result<backend::Extent> DeviceBackend::allocation(uint64_t offset, uint64_t limit) const {
  return all_allocated(*this, offset, limit);
}

// `closed`: what is wrong when it is; empty: nothing.
Result<void> DeviceBackend::check_device(uint64_t wanted, const std::string& closed) {
  std::shared_ptr<FileDescriptor> fd;
  {
    const std::lock_guard lock(control_);
    fd = claim_.fd;
  }
  if (!fd) return closed.empty() ? Result<void>() : backend::fail(path_, closed, "");
  Result<uint64_t> found = present_size(fd->get());
  if (!found) return Error{found.error()};
  return follow_size(path_, *found, wanted, size_);
}

}  // namespace sluice::passthrough
