// Where the bare program's bytes come from and go to: nowhere, memory, or a file read and written
// inline by preadv/pwritev.
#pragma once

#include <cstdint>
#include <string>

#include "wire/bare.h"

namespace sluice::bench {

class Stores {
 public:
  // `memory` in bytes, 0: no such store; an empty path: no file.
  Stores(uint64_t memory, const std::string& path);
  ~Stores();
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  // Bytes; 0: there is no such store. The null store has no end.
  uint64_t size(bare::Store store) const;
  bool holds(bare::Store store, uint64_t offset, uint32_t size) const;
  const uint8_t* null_payload() const { return null_; }
  uint8_t* memory(uint64_t offset) const { return memory_ + offset; }
  // The file.
  bool read(uint64_t offset, uint8_t* out, uint32_t size) const;
  bool write(uint64_t offset, const uint8_t* data, uint32_t size) const;

 private:
  uint8_t* null_ = nullptr;
  uint8_t* memory_ = nullptr;
  uint64_t memory_size_ = 0;
  uint64_t file_size_ = 0;
  int fd_ = -1;
};

}  // namespace sluice::bench
