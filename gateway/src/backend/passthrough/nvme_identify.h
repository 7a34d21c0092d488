// Parses what an NVMe controller and a namespace report (NVM Express Base Specification 2.0, NVM
// Command Set Specification 1.0: Identify). Pure functions; invalid data from a device gives an
// error.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace sluice::passthrough {

inline constexpr size_t kIdentifyBytes = 4096;

struct NvmeController {
  uint64_t max_transfer = 0;    // bytes, MDTS in units of the smallest page; 0: no limit
  bool volatile_cache = false;  // VWC bit 0
  bool deallocates = false;     // ONCS: Dataset Management
  bool writes_zeroes = false;   // ONCS: Write Zeroes
  std::string model;            // MN, for logs
};

// `min_page`: bytes, CAP.MPSMIN; the kernel does not report it, and 4096 is usual.
Result<NvmeController> parse_controller(ByteView identify, uint64_t min_page = 4096);

// Write Zeroes Size Limit of the NVM command set's Identify Controller (CNS 06h), bytes; 0: none.
uint64_t parse_write_zeroes_limit(ByteView identify, uint64_t min_page = 4096);

struct NvmeNamespace {
  uint64_t blocks = 0;             // NSZE
  uint32_t block_size = 0;         // bytes: 512 or 4096
  bool thin = false;               // NSFEAT bit 0
  bool write_protected = false;    // NSATTR bit 0
  bool reads_zeros = false;        // DLFEAT: deallocated blocks read zeros
  bool zeroes_deallocate = false;  // DLFEAT bit 3: the DEAC bit of Write Zeroes works
};

// Refuses formats with metadata or protection information, and other block sizes; the error names a
// format to use.
Result<NvmeNamespace> parse_namespace(ByteView identify);

}  // namespace sluice::passthrough
