// A record for tests.
#pragma once

#include "control/local/record.h"
#include "control/test_objects.h"

namespace sluice::control {

inline Record some_record() {
  Record record;
  record.volume = kVolumeUid;
  record.epoch = 7;
  record.order = 12;
  record.generation = 3;
  record.holder = this_process("incarnation-1", "a.sock");
  record.reservations.generation = 9;
  lun::Registration registration;
  registration.key = 0x1234;
  registration.nexus.initiator_name = "iqn.2026-11.test:host";
  record.reservations.registrations.push_back(registration);
  return record;
}

}  // namespace sluice::control
