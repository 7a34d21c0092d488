// How this gateway logs in to an owner: with which identity, keys and offer.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "forward/initiator_login.h"
#include "forward/peers.h"
#include "iscsi/login/forwarding_access.h"
#include "iscsi/login/parameters.h"

namespace sluice::forward {

// The parts of its gateway that a session with an owner uses. They outlive it.
struct Surroundings {
  Peers* peers = nullptr;
  iscsi::ForwardingAccess* access = nullptr;
  std::function<void(uint8_t* out, size_t n)> random;
  iscsi::Offer offer;
};

// The login of a session at `owner`, with the key number `key` in the order of preference, or the
// last key if there are fewer.
InitiatorLogin::Setup login_setup(const Surroundings& around, const Peer& owner, size_t key);
// After a refused login: selects the next key, if the owner refused this one. False: there is none;
// start again with the first after limits::kRedial.
bool next_key(const Surroundings& around, const Peer& owner, uint16_t status, size_t* key);

}  // namespace sluice::forward
