#include "load/bare_dialect.h"

#include <cstring>

#include "wire/tcp.h"

namespace sluice::bench {

BareDialect::BareDialect(int fd, bare::Store store, DigestChoice digests) : digests_(digests) {
  bare::Header hello;
  hello.set_op(bare::Op::kHello);
  hello.set_store(store);
  hello.set_digests(digests);
  send_all(fd, hello.data(), bare::kHeaderSize);
  bare::Header answer;
  if (!receive_all(fd, answer.data(), bare::kHeaderSize)) die("no answer to hello");
  if (answer.status() != bare::Status::kGood) die("bare-echo has no such store (no --file?)");
}

bool BareDialect::issue(const Command& command, TxQueue& tx) {
  bare::Header header;
  header.set_op(command.write ? bare::Op::kWrite : bare::Op::kRead);
  header.set_offset(command.offset);
  header.set_tag(command.slot);
  if (command.write) {
    header.set_payload(command.size);
    tx.add(header, command.data, command.size);
  } else {
    header.set_wanted(command.size);
    tx.add(header, nullptr, 0);
  }
  return true;
}

const char* BareDialect::parse(const uint8_t* bytes, Incoming* in, TxQueue&) {
  bare::Header header;
  std::memcpy(header.data(), bytes, bare::kHeaderSize);
  if (header.op() != bare::Op::kRead && header.op() != bare::Op::kWrite) return "unknown answer";
  in->data = header.payload();
  in->data_digest = digests_.data && in->data > 0;
  in->slot = header.tag();
  in->payload = true;
  in->done = true;
  in->status = static_cast<uint8_t>(header.status());
  return nullptr;
}

}  // namespace sluice::bench
