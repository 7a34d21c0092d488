#pragma once

#include "load/dialect.h"
#include "wire/bare.h"

namespace sluice::bench {

class BareDialect : public Dialect {
 public:
  // Greets the peer on a fresh connection; blocking. Ends the program when refused.
  BareDialect(int fd, bare::Store store, DigestChoice digests);

  bool issue(const Command& command, TxQueue& tx) override;
  uint32_t header_size() const override {
    return bare::kHeaderSize + (digests_.header ? kDigestSize : 0);
  }
  const char* parse(const uint8_t* header, Incoming* in, TxQueue& tx) override;
  TxQueue::Digests digests() const override {
    return {.header = digests_.header, .data = digests_.data, .constant_payload = false};
  }
  void finish(int) override {}

 private:
  DigestChoice digests_;
};

}  // namespace sluice::bench
