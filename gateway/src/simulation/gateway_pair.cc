#include "simulation/gateway_pair.h"

#include <algorithm>

#include "scsi/report_luns.h"
#include "unit/unit.h"

namespace sluice::simulation {

std::vector<uint8_t> ForwardedCommand::data_in() const {
  std::vector<uint8_t> all;
  for (const Slice& s : command.data_in) all.insert(all.end(), s.data, s.data + s.size);
  return all;
}

namespace {

// Two gateways that draw the same challenges look like one that reflects them.
iscsi::Gateway& with_random(iscsi::Gateway& gateway) {
  gateway.random = [next = uint32_t{1}](uint8_t* out, size_t n) mutable {
    for (size_t i = 0; i < n; ++i) {
      next = next * 1664525 + 1013904223;
      out[i] = static_cast<uint8_t>(next >> 24);
    }
  };
  return gateway;
}

void set_role(lun::Unit& unit, const lun::Role& role) {
  const std::lock_guard lock(unit.mutex());
  unit.set_role_locked(role);
}

}  // namespace

GatewayPair::GatewayPair(iscsi::Settings settings)
    : owner(settings), origin(settings), forwarder(with_random(origin.gateway()), origin) {
  forwarder.set_dialer(0, this, &origin.shard().now);
  origin.gateway().forwarding.set_identity({kOrigin, "origin-a"});
  owner.gateway().forwarding.set_identity({kOwner, "owner-a"});
  for (SimulatedGateway* g : {&owner, &origin}) {
    g->gateway().forwarding.set_keys({{"key-1", "a forwarding key of some length"}});
    g->gateway().forwarding.set_peers({{kOrigin, "origin-a", {}, {}}, {kOwner, "owner-a", {}, {}}});
  }
  for (unsigned i = 0; i < 2; ++i) {
    set_role(*owner.unit(i), {lun::Standing::kOwner, 1, kOwner});
    set_role(*origin.unit(i), {lun::Standing::kForwarder, 1, kOwner});
  }
  origin.shard().context.forwarding = &forwarder;
  set_owner(owner_peer());
}

GatewayPair::~GatewayPair() {
  for (unsigned i = 0; i < 2; ++i) {
    owner.disk(i).hold(false);
    owner.disk(i).release_all();
  }
  network = Network::kRefused;
  reset_connections();
  for (const auto& weak : nexuses_) {
    if (const std::shared_ptr<lun::Nexus> nexus = weak.lock()) nexus->close(true, [] {});
  }
  advance(5 * kSecond);
  forwarder.stop(0);
  calls_.clear();
}

forward::Peer GatewayPair::owner_peer() const {
  return {.number = kOwner,
          .incarnation = "owner-a",
          .address = "192.0.2.2:3261",
          .fenced = false,
          .node = "b"};
}

void GatewayPair::set_owner(const forward::Peer& peer) {
  forwarder.peers().set({peer});
  settle();
}

std::shared_ptr<lun::Nexus> GatewayPair::open_nexus(uint8_t isid, bool read_only) {
  lun::NexusId id;
  id.initiator_name = "iqn.2026-11.dev.sluice.test:far";
  id.isid = {0x80, 0, 0, 0, 0, isid};
  id.target_portal_group = 11;
  id.relative_target_port = 21;
  auto nexus = lun::Nexus::open(origin.exports().find(SimulatedGateway::kTarget), id,
                                origin.shard().context, read_only);
  for (const uint64_t lun : nexus->lun_numbers()) {
    lun::CommandContext* itl = nexus->use(scsi::lun_field(lun));
    const std::lock_guard lock(itl->unit().mutex());
    itl->pending.clear();
    itl->attention = false;
  }
  nexuses_.push_back(nexus);
  return nexus;
}

std::shared_ptr<lun::Link> GatewayPair::link(const std::shared_ptr<lun::Nexus>& nexus) {
  return nexus->link_to(kOwner);
}

std::shared_ptr<ForwardedCommand> GatewayPair::command(ByteView cdb, uint32_t data_in, ByteView out,
                                                       uint64_t lun, size_t piece) {
  auto c = std::make_shared<ForwardedCommand>();
  commands_.push_back(c);
  c->command.lun_field = lun << 48;
  std::copy_n(cdb.begin(), std::min<size_t>(cdb.size(), 16), c->command.cdb.begin());
  if (cdb.size() > 16) c->command.long_cdb = cdb;
  c->command.expected_data_in = data_in;
  c->out.assign(out.begin(), out.end());
  for (size_t at = 0; at < c->out.size(); at += piece) {
    const size_t n = std::min(piece, c->out.size() - at);
    c->command.data_out.push_back({{}, c->out.data() + at, static_cast<uint32_t>(n)});
  }
  c->command.expected_data_out = static_cast<uint32_t>(out.size());
  c->command.context = c.get();
  c->command.complete = [](lun::Command& done) {
    static_cast<ForwardedCommand*>(done.context)->ended = true;
  };
  return c;
}

void GatewayPair::begin(lun::Nexus& nexus, ForwardedCommand& command) {
  if (!nexus.begin(command.command)) return;
  command.command.data_out_size =
      std::min(command.command.data_out_wanted, command.command.expected_data_out);
  nexus.data_ready(command.command);
}

std::shared_ptr<ForwardedCommand> GatewayPair::run(lun::Nexus& nexus, ByteView cdb,
                                                   uint32_t data_in, ByteView out, uint64_t lun,
                                                   size_t piece) {
  auto c = command(cdb, data_in, out, lun, piece);
  begin(nexus, *c);
  settle();
  return c;
}

void GatewayPair::dial(const std::string&, std::shared_ptr<forward::Caller> caller) {
  ++dialled_;
  calls_.push_back(std::make_unique<Call>());
  calls_.back()->caller = std::move(caller);
}

bool GatewayPair::answer_dials() {
  bool moved = false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    Call& call = *calls_[i];
    if (call.connected || call.closed || network == Network::kSilent) continue;
    moved = true;
    if (network == Network::kRefused) {
      call.closed = true;
      call.caller->unreachable(true);
      continue;
    }
    call.connected = true;
    call.far = &owner.connect_gateway();
    call.caller->connected(call);
  }
  return moved;
}

bool GatewayPair::carry(Call& call) {
  if (!call.connected || call.closed || network == Network::kSilent) return false;
  bool moved = false;
  iscsi::Outbox& out = call.caller->outbox();
  if (out.ready()) {
    std::vector<uint8_t> bytes;
    for (const iovec& v : out.take(limits::kMaxSendVectors)) {
      const auto* p = static_cast<const uint8_t*>(v.iov_base);
      bytes.insert(bytes.end(), p, p + v.iov_len);
    }
    out.sent(bytes.size());
    sent_ += bytes.size();
    call.caller->on_sent(bytes.size());
    call.far->send(bytes);
    moved = true;
  }
  const std::vector<uint8_t> back = call.far->take();
  moved = moved || !back.empty();
  receive(call, back);
  if (!call.closed && call.far->closed()) {
    call.closed = true;
    call.caller->on_closed();
    moved = true;
  }
  return moved;
}

void GatewayPair::receive(Call& call, ByteView bytes) {
  while (!bytes.empty() && !call.closed) {
    const size_t n = std::min<size_t>(bytes.size(), limits::kReceiveBufferSize);
    BufferRef buffer = origin.buffers().allocate(static_cast<uint32_t>(n));
    std::memcpy(buffer.data(), bytes.data(), n);
    uint8_t* data = buffer.data();
    call.caller->receive({std::move(buffer), data, static_cast<uint32_t>(n)});
    bytes = bytes.subspan(n);
  }
}

void GatewayPair::send_as_owner(ByteView bytes) {
  if (!calls_.empty()) receive(*calls_.back(), bytes);
}

void GatewayPair::settle() {
  for (bool moved = true; moved;) {
    owner.run();
    origin.run();
    moved = answer_dials();
    for (size_t i = 0; i < calls_.size(); ++i) moved = carry(*calls_[i]) || moved;
    for (const auto& call : calls_) {
      // The origin closed its end: the owner's end sees that unless the network is silent.
      if (!call->closed || !call->far || network == Network::kSilent) continue;
      SimulatedConnection* far = std::exchange(call->far, nullptr);
      if (far->closed()) continue;
      far->hang_up();
      moved = true;
    }
    std::erase_if(calls_, [](const auto& call) { return call->closed && call->far == nullptr; });
  }
}

void GatewayPair::reset_connections(bool one_sided) {
  const size_t present = calls_.size();  // who hears of it may dial again
  for (size_t i = 0; i < present; ++i) {
    Call& call = *calls_[i];
    if (!call.connected) continue;
    if (!std::exchange(call.closed, true)) call.caller->on_closed();
    if (one_sided) call.far = nullptr;
  }
}

void GatewayPair::advance(Nanos span) {
  for (Nanos left = span; left > 0; left -= limits::kTick) {
    owner.advance(std::min(left, limits::kTick));
    origin.advance(std::min(left, limits::kTick));
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!calls_[i]->closed && calls_[i]->connected) calls_[i]->caller->tick();
    }
    forwarder.tick(0);
    for (const auto& weak : nexuses_) {
      const std::shared_ptr<lun::Nexus> nexus = weak.lock();
      if (nexus && !nexus->closed()) nexus->tick();
    }
    settle();
  }
}

}  // namespace sluice::simulation
