// Where the bare program's bytes come from and go to: nowhere, a mapped file, or a file read and
// written inline by preadv/pwritev.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::bench {

class Stores {
 public:
  // An empty path leaves only the null store.
  explicit Stores(const std::string& path);
  ~Stores();
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  bool has_file() const { return fd_ >= 0; }
  bool in_file(uint64_t offset, uint32_t size) const {
    return offset <= size_ && size <= size_ - offset;
  }
  const uint8_t* null_payload() const { return null_; }
  uint8_t* mapped(uint64_t offset) const { return map_ + offset; }
  bool read(uint64_t offset, uint8_t* out, uint32_t size) const;
  bool write(uint64_t offset, const uint8_t* data, uint32_t size) const;

 private:
  uint8_t* null_ = nullptr;
  uint8_t* map_ = nullptr;
  uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace sluice::bench
