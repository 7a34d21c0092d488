// EXTENDED COPY between two units of one target.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "commands/copies/copy_fixture.h"

namespace sluice::lun {

struct Segment {
  uint16_t source = 0;
  uint16_t destination = 0;
  uint16_t blocks = 0;
  uint64_t source_lba = 0;
  uint64_t destination_lba = 0;
  uint8_t flags = 0;  // DC 2, CAT 1
};

class XcopyTest : public CopyTest {
 protected:
  using CopyTest::CopyTest;

  static Bytes cscd(const Unit& unit, bool pad = false) {
    Bytes d(32);
    const scsi::Naa naa = scsi::naa_of(unit.scsi_identity());
    d[0] = 0xe4;
    d[1] = 0xc0;  // LU ID TYPE is obsolete and ignored
    d[4] = 1;
    d[5] = 3;
    d[7] = static_cast<uint8_t>(naa.size);
    std::copy_n(naa.value.begin(), naa.size, d.begin() + 8);
    d[28] = pad ? 4 : 0;
    put_be(d, 29, 3, unit.block_size());
    return d;
  }
  static Bytes list(const std::vector<Bytes>& cscds, const std::vector<Segment>& segments,
                    uint8_t list_id = 1, uint8_t usage = 0) {
    Bytes out(16);
    out[0] = list_id;
    out[1] = static_cast<uint8_t>(usage << 3);
    put_be(out, 2, 2, cscds.size() * 32);
    put_be(out, 8, 4, segments.size() * 28);
    for (const Bytes& c : cscds) out.insert(out.end(), c.begin(), c.end());
    for (const Segment& s : segments) {
      Bytes d(28);
      d[0] = 0x02;
      d[1] = s.flags;
      put_be(d, 2, 2, 24);
      put_be(d, 4, 2, s.source);
      put_be(d, 6, 2, s.destination);
      put_be(d, 10, 2, s.blocks);
      put_be(d, 12, 8, s.source_lba);
      put_be(d, 20, 8, s.destination_lba);
      out.insert(out.end(), d.begin(), d.end());
    }
    return out;
  }
  Task& begin_copy(Nexus& nexus, Bytes data, uint64_t lun = 0) {
    Bytes cdb(16);
    cdb[0] = 0x83;
    put_be(cdb, 10, 4, data.size());
    return start(nexus, cdb, std::move(data), lun << 48);
  }
  uint32_t copy(const std::vector<Segment>& segments, uint8_t list_id = 1) {
    return run(begin_copy(*a, both(segments, list_id))).sense();
  }
  Bytes both(const std::vector<Segment>& segments, uint8_t list_id = 1, uint8_t usage = 0) {
    return list({cscd(*unit), cscd(*other)}, segments, list_id, usage);
  }
  Task& results(Nexus& nexus, uint8_t action, uint8_t list_id = 1) {
    Bytes cdb(16);
    cdb[0] = 0x84;
    cdb[1] = action;
    cdb[2] = list_id;
    put_be(cdb, 10, 4, 1024);
    return run(start(nexus, cdb));
  }
};

}  // namespace sluice::lun
