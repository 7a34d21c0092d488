// Unit attentions of LUNs that a session uses for the first time.
#pragma once

#include <gtest/gtest.h>

#include "base/limits.h"
#include "commands/reservations/reservation_commands_fixture.h"

namespace sluice::lun {

using scsi::PrOutAction;
using scsi::Status;

inline constexpr uint32_t kPowerOn = 0x062900;
inline constexpr uint32_t kNexusLoss = 0x062907;
inline constexpr uint32_t kDeviceReset = 0x062903;
inline constexpr uint32_t kModeChanged = 0x062a01;
inline constexpr uint32_t kInventoryChanged = 0x063f0e;

class FirstUseTest : public ReservationCommandsTest {
 protected:
  static constexpr uint64_t kFive = uint64_t{5} << 48;

  // The sense data of the first commands, until one succeeds.
  std::vector<uint32_t> told(Nexus& nexus, uint64_t lun_field = 0) {
    std::vector<uint32_t> all;
    while (all.size() < limits::kMaxUnitAttentions) {
      const uint32_t sense = run(start(nexus, test_unit_ready(), {}, lun_field)).sense();
      if (sense == 0) break;
      all.push_back(sense);
    }
    return all;
  }
  void map(std::vector<Target::LunEntry> luns) {
    target->set_luns(std::move(luns), reactors);
    reactors.run();
  }
  // The host has been connected to the other gateway for `age`.
  std::shared_ptr<Nexus> open_forwarded(const std::string& name, uint16_t port = 1, Nanos age = 0) {
    NexusId id;
    id.initiator_name = "iqn.2026-11.test:" + name;
    id.relative_target_port = port;
    auto nexus = Nexus::open(target, id, {&aio, &pool, &reactors, 0, &now, &latencies}, false, age);
    nexuses.push_back(nexus);
    return nexus;
  }
  // MODE SENSE(6) of the control page, and MODE SELECT(6) of the same with the other SWP.
  void toggle_write_protection(Nexus& by) {
    told(by);
    Bytes page = start(by, {0x1a, 0x08, 0x0a, 0, 252, 0}).answer();
    ASSERT_GE(page.size(), 16u);
    page[0] = page[2] = 0;
    page[4 + 4] ^= 0x08;
    Task& select = start(by, {0x15, 0x10, 0, 0, static_cast<uint8_t>(page.size()), 0}, page);
    ASSERT_EQ(select.command.status, Status::kGood) << std::hex << select.sense();
  }
  void reset_by(Nexus& nexus) {
    bool done = false;
    ASSERT_TRUE(nexus.logical_unit_reset(0, [&](bool at_owner) { done = at_owner; }));
    reactors.run();
    ASSERT_TRUE(done);
  }
  void leave(Nexus& nexus) {
    nexus.close(false, [] {});
    reactors.run();
  }
};

using Told = std::vector<uint32_t>;

}  // namespace sluice::lun
