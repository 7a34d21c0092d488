// Space of a local pool that its gateways free when the pool is full and they have to create a
// file: the first record of a volume, or the socket of a gateway that starts (XFS creates nothing
// in a full file system, not even an empty file). It is the file `reserve` in `.sluice`.
//
// It is no guarantee, because a host that writes to a thin volume may get the blocks first. What
// must not fail is written in place instead (record_slots.h, claim_slots.h).
//
// Threads and processes: any; the file has no content.
#pragma once

namespace sluice::control {

// Allocates the reserve in the directory `records` if it is missing and there is space. A file
// system that cannot preallocate has none.
void keep_reserve(int records);
// Frees the reserve. False: there was none, so a second attempt would fail as the first did.
bool release_reserve(int records);

}  // namespace sluice::control
