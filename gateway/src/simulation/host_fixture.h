// Common code of the host command sequence tests: a logged-in host that sends CDBs.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "simulation/initiator.h"

namespace sluice::simulation {

using Bytes = std::vector<uint8_t>;

// "12 01 83 00 ff 00" -> bytes.
inline Bytes hex(const std::string& text) {
  Bytes out;
  unsigned value = 0;
  int used = 0;
  for (const char* p = text.c_str(); std::sscanf(p, " %2x%n", &value, &used) == 1; p += used) {
    out.push_back(static_cast<uint8_t>(value));
  }
  return out;
}

class HostSequence : public testing::Test {
 protected:
  void SetUp() override {
    for (Initiator* h : {&host_, &other_}) {
      h->isid[5] = h == &host_ ? 1 : 2;
      h->name = h == &host_ ? "iqn.2026-11.dev.sluice.test:a" : "iqn.2026-11.dev.sluice.test:b";
      ASSERT_TRUE(h->login());
      h->clear_attention(0);
      h->clear_attention(1);
    }
  }

  Initiator::Outcome run(const std::string& cdb, uint32_t data_in = 0, const Bytes& out = {},
                         uint64_t lun = 0) {
    return host_.execute(hex(cdb), data_in, out, lun);
  }
  Initiator::Outcome run_other(const std::string& cdb, uint32_t data_in = 0, const Bytes& out = {},
                               uint64_t lun = 0) {
    return other_.execute(hex(cdb), data_in, out, lun);
  }
  static void expect_good(const Initiator::Outcome& o) {
    EXPECT_TRUE(o.answered);
    EXPECT_EQ(o.status, 0) << "sense " << int(o.sense_key) << "/" << int(o.asc) << "/"
                           << int(o.ascq);
  }
  static void expect_sense(const Initiator::Outcome& o, int key, int asc, int ascq) {
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.sense_key, key);
    EXPECT_EQ(o.asc, asc);
    EXPECT_EQ(o.ascq, ascq);
  }
  // Designators of VPD page 83h as (type, association, bytes).
  struct Designator {
    int type;
    int association;
    Bytes bytes;
  };
  std::vector<Designator> designators() {
    const Bytes page = run("12 01 83 ff ff 00", 65535).data;
    std::vector<Designator> all;
    for (size_t at = 4; at + 4 <= page.size();) {
      const size_t n = page[at + 3];
      all.push_back({page[at + 1] & 0xf, page[at + 1] >> 4 & 3,
                     Bytes(page.begin() + static_cast<ptrdiff_t>(at + 4),
                           page.begin() + static_cast<ptrdiff_t>(at + 4 + n))});
      at += 4 + n;
    }
    return all;
  }
  Bytes write(uint64_t lba, uint32_t blocks, uint8_t seed) {
    Bytes data(size_t{blocks} * 512);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(seed + i / 512 + i);
    EXPECT_EQ(host_.execute(write16(lba, blocks), 0, data).status, 0);
    return data;
  }
  Bytes read(uint64_t lba, uint32_t blocks, uint64_t lun = 0) {
    return host_.execute(read16(lba, blocks), blocks * 512, {}, lun).data;
  }
  // PERSISTENT RESERVE OUT with the basic parameter list (SPC-5 §6.17.3).
  Initiator::Outcome reserve_out(Initiator& host, uint8_t action, uint8_t type, uint64_t key,
                                 uint64_t service_key, uint8_t flags = 0) {
    Bytes cdb = hex("5f 00 00 00 00 00 00 00 18 00");
    cdb[1] = action;
    cdb[2] = type;
    Bytes list(24);
    store_be64(list.data(), key);
    store_be64(list.data() + 8, service_key);
    list[20] = flags;
    return host.execute(cdb, 0, list);
  }

  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
  Initiator other_{gateway_.connect()};
};

}  // namespace sluice::simulation
