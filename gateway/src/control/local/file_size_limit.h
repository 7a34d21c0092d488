// Largest file size in a file system: the largest size of a volume in a local pool.
#pragma once

#include <cstdint>

namespace sluice::control {

// Largest file size in the file system of `directory`, in bytes, at most 64 TiB; 0: unknown. The
// probe sets the size of an empty file, which uses no space.
int64_t probe_max_file_bytes(int directory);

}  // namespace sluice::control
