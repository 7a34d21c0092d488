// Common code of the whole-device backends around their channels.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "passthrough/channel.h"

namespace sluice::passthrough {

// The name of a device in sysfs: "ng0n1", "sg3"; empty: no such device.
std::string sysfs_name(dev_t character_device);

// The result of a request that needs no device command; nullopt: continue.
std::optional<int> refuse(const backend::Io& io, const backend::Backend& backend);

// As Backend::submit(). `channel` null: -ENOMEM.
bool submit_to(Channel* channel, backend::Io& io);

Result<backend::Extent> all_allocated(const backend::Backend& backend, uint64_t offset,
                                      uint64_t limit);

// Backend::resize() of a device that has `found` bytes now; `size`: the size at the last check.
Result<void> follow_size(const std::string& path, uint64_t found, uint64_t wanted,
                         std::atomic<uint64_t>& size);

}  // namespace sluice::passthrough
