// What backends on whole devices have in common around their channels.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "passthrough/channel.h"

namespace sluice::passthrough {

// The name of a device in sysfs: "ng0n1", "sg3"; empty: there is none (any more).
std::string sysfs_name(dev_t character_device);

// The result of a request that no device is asked for; none: go on.
std::optional<int> refuse(const backend::Io& io, const backend::Backend& backend);

// As Backend::submit(). `channel` null: -ENOMEM.
bool submit_to(Channel* channel, backend::Io& io);

Result<backend::Extent> all_allocated(const backend::Backend& backend, uint64_t offset,
                                      uint64_t limit);

// Backend::resize() of a device that has `found` bytes now and `size` when it was last looked at.
Result<void> follow_size(const std::string& path, uint64_t found, uint64_t wanted,
                         std::atomic<uint64_t>& size);

}  // namespace sluice::passthrough
