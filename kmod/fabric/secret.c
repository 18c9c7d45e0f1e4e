// SPDX-License-Identifier: GPL-2.0
/*
 * Secrets: the keys of the cluster, under which peers prove to each other that they belong to it
 * (struct kdsm_wire_hello). A key comes from the kernel's keyrings, as a key of type "logon" that
 * programs cannot read. A node may have two, so that nodes can change to another key one by one:
 * it asks with the newest, and accepts both.
 *
 * accept.c and connect.c exchange the proofs. keys.c is about the keys of memory registrations.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <keys/user-type.h>
#include <kdsm/uapi_netlink.h>
#include <linux/key.h>
#include <linux/uio.h>

#include "internal.h"

static int kdsm_secret_hash(struct crypto_shash *hmac, const struct kvec *pieces,
			    unsigned int count, u8 hash[KDSM_PROOF_SIZE])
{
	SHASH_DESC_ON_STACK(desc, hmac);
	unsigned int i;
	int err;

	desc->tfm = hmac;
	err = crypto_shash_init(desc);
	for (i = 0; i < count && !err; i++)
		err = crypto_shash_update(desc, pieces[i].iov_base, pieces[i].iov_len);
	if (!err)
		err = crypto_shash_final(desc, hash);
	shash_desc_zero(desc);
	return err;
}

/* Two different keys have different ids, but for 1 pair in 2^32. An id is not 0. */
static int kdsm_secret_identify(struct kdsm_secret *secret)
{
	const struct kvec purpose = { "kdsm id of key", 14 };
	__le32 hash[KDSM_PROOF_SIZE / sizeof(__le32)];
	int err = kdsm_secret_hash(secret->hmac, &purpose, 1, (u8 *)hash);

	secret->id = le32_to_cpu(hash[0]) ?: 1;
	return err;
}

static int kdsm_secret_set(struct kdsm_secret *secret, struct key *key)
{
	const struct user_key_payload *payload;
	int err = -EKEYREVOKED;

	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (payload)
		err = payload->datalen != KDSM_KEY_SIZE ? -EKEYREJECTED :
		      crypto_shash_setkey(secret->hmac, payload->data, payload->datalen);
	up_read(&key->sem);
	return err;
}

/* Make a secret of the key in the caller's keyrings. */
static int kdsm_secret_read(const uuid_t *uuid, struct kdsm_secret *secret)
{
	char description[sizeof(KDSM_KEY_PREFIX) + UUID_STRING_LEN];
	struct key *key;
	int err;

	snprintf(description, sizeof(description), KDSM_KEY_PREFIX "%pUb", uuid);
	key = request_key(&key_type_logon, description, NULL);
	if (IS_ERR(key))
		return PTR_ERR(key);
	secret->hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	err = PTR_ERR_OR_ZERO(secret->hmac);
	if (err) {
		secret->hmac = NULL;
		goto put;
	}
	err = kdsm_secret_set(secret, key) ?: kdsm_secret_identify(secret);
	if (err)
		kdsm_secret_free(secret);
put:
	key_put(key);
	return err;
}

void kdsm_secret_free(struct kdsm_secret *secret)
{
	if (secret->hmac)
		crypto_free_shash(secret->hmac);
	*secret = (struct kdsm_secret) { 0 };
}

int kdsm_fabric_load_key(struct kdsm_fabric *fabric)
{
	struct kdsm_secret *secrets = fabric->secrets, secret = { 0 };
	int err;

	if (fabric->config.insecure)
		return -EOPNOTSUPP;
	err = kdsm_secret_read(&fabric->config.uuid, &secret);
	if (err)
		return err;
	down_write(&fabric->secrets_lock);
	if (secret.id == secrets[0].id) {
		kdsm_secret_free(&secret);
	} else {
		kdsm_secret_free(&secrets[1]);
		secrets[1] = secrets[0];
		secrets[0] = secret;
	}
	up_write(&fabric->secrets_lock);
	return 0;
}

int kdsm_fabric_retire_key(struct kdsm_fabric *fabric)
{
	int err = 0;

	down_write(&fabric->secrets_lock);
	if (fabric->secrets[1].id)
		kdsm_secret_free(&fabric->secrets[1]);
	else
		err = -ENOKEY;
	up_write(&fabric->secrets_lock);
	return err;
}

u32 kdsm_fabric_key(struct kdsm_fabric *fabric, unsigned int which)
{
	return READ_ONCE(fabric->secrets[which].id);
}

bool kdsm_secret_known(struct kdsm_fabric *fabric, u32 id)
{
	if (fabric->config.insecure || !id)
		return fabric->config.insecure && !id;
	return id == kdsm_fabric_key(fabric, 0) || id == kdsm_fabric_key(fabric, 1);
}

int kdsm_secret_prove(struct kdsm_fabric *fabric, enum kdsm_role role,
		      const struct kdsm_wire_hello *hello,
		      const struct kdsm_wire_welcome *welcome, u8 proof[KDSM_PROOF_SIZE])
{
	__le32 wire_role = cpu_to_le32(role);
	const struct kvec pieces[] = {
		{ &wire_role, sizeof(wire_role) },
		{ (void *)hello, sizeof(*hello) },
		{ (void *)welcome, offsetof(struct kdsm_wire_welcome, proof) },
	};
	u32 id = le32_to_cpu(hello->key);
	int err = -ENOKEY;
	unsigned int i;

	memset(proof, 0, KDSM_PROOF_SIZE);
	if (!id)
		return fabric->config.insecure ? 0 : -ENOKEY;
	down_read(&fabric->secrets_lock);
	for (i = 0; i < ARRAY_SIZE(fabric->secrets); i++)
		if (fabric->secrets[i].id == id)
			err = kdsm_secret_hash(fabric->secrets[i].hmac, pieces,
					       ARRAY_SIZE(pieces), proof);
	up_read(&fabric->secrets_lock);
	return err;
}

int kdsm_secret_verify(struct kdsm_fabric *fabric, enum kdsm_role role,
		       const struct kdsm_wire_hello *hello,
		       const struct kdsm_wire_welcome *welcome,
		       const u8 proof[KDSM_PROOF_SIZE])
{
	u8 expected[KDSM_PROOF_SIZE];
	int err = kdsm_secret_prove(fabric, role, hello, welcome, expected);

	if (!err && crypto_memneq(proof, expected, sizeof(expected)))
		err = -EKEYREJECTED;
	return err;
}
