#include "passthrough/requests.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "backend/failure.h"
#include "backend/range.h"
#include "backend/size_text.h"
#include "passthrough/progress.h"

namespace sluice::passthrough {

using backend::fail;
using backend::format_size;
using backend::Io;
using backend::Op;

std::string sysfs_name(dev_t device) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(
      "/sys/dev/char/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)),
      error);
  return error ? "" : target.filename().string();
}

std::optional<int> refuse(const Io& io, const backend::Backend& backend) {
  const backend::Info& info = backend.info();
  if (io.op == Op::kCheckFence) return 0;  // the lock's holder has exclusive access
  if (io.op == Op::kFlush) return info.read_only ? std::optional(0) : std::nullopt;
  if (io.op == Op::kCdb) return info.takes_cdbs ? std::nullopt : std::optional(-EOPNOTSUPP);
  if (io.length == 0 || !backend::within(io.offset, io.length, backend.size_bytes())) {
    return -EINVAL;
  }
  if (io.op == Op::kRead) return std::nullopt;
  if (info.read_only) return -EROFS;
  if (io.op == Op::kDiscard && info.discard_granularity == 0) return -EOPNOTSUPP;
  if (io.op == Op::kWrite && (io.flags & backend::kIoAtomic) != 0) return -EOPNOTSUPP;
  return std::nullopt;
}

bool submit_to(Channel* channel, Io& io) {
  if (!channel) {
    io.result = -ENOMEM;
    return true;
  }
  Progress::begin(io);
  return channel->submit(io);
}

Result<backend::Extent> all_allocated(const backend::Backend& backend, uint64_t offset,
                                      uint64_t limit) {
  const uint64_t size = backend.size_bytes();
  if (limit == 0 || offset >= size) return Error{"allocation asked beyond the end"};
  return backend::Extent{std::min(limit, size - offset), true};
}

Result<void> follow_size(const std::string& path, uint64_t found, uint64_t wanted,
                         std::atomic<uint64_t>& size) {
  const uint64_t known = size.load(std::memory_order_acquire);
  if (found < known) {
    return fail(path, "the device shrank from " + format_size(known) + " to " + format_size(found),
                "grow it again");
  }
  if (wanted != 0 && wanted != found) {
    return fail(path, "the device holds " + format_size(found) + ", not " + format_size(wanted),
                "resize the device first");
  }
  size.store(found, std::memory_order_release);
  return {};
}

}  // namespace sluice::passthrough
