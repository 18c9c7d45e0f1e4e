/* SPDX-License-Identifier: GPL-2.0 */
/* Handlers of messages about locks; the context is the cluster. */
#ifndef KDSM_LOCK_SERVE_H
#define KDSM_LOCK_SERVE_H

#include "fabric/fabric.h"

/* registry.c, table.c, death.c */
int kdsm_lock_serve_open(void *context, struct kdsm_request *request);
int kdsm_lock_serve_set(void *context, struct kdsm_request *request);
int kdsm_lock_serve_miss(void *context, struct kdsm_request *request);

/* serve.c: KDSM_MESSAGE_LOCK_MEET, KDSM_MESSAGE_TURN_* and KDSM_MESSAGE_READ_* */
int kdsm_lock_serve_meet(void *context, struct kdsm_request *request);
int kdsm_lock_serve_enqueue(void *context, struct kdsm_request *request);
int kdsm_lock_serve_hand(void *context, struct kdsm_request *request);
int kdsm_lock_serve_leave(void *context, struct kdsm_request *request);
int kdsm_lock_serve_extend(void *context, struct kdsm_request *request);
int kdsm_lock_serve_survey(void *context, struct kdsm_request *request);
int kdsm_lock_serve_enter(void *context, struct kdsm_request *request);
int kdsm_lock_serve_admit(void *context, struct kdsm_request *request);
int kdsm_lock_serve_revoke(void *context, struct kdsm_request *request);
int kdsm_lock_serve_dismiss(void *context, struct kdsm_request *request);
int kdsm_lock_serve_left(void *context, struct kdsm_request *request);

#endif /* KDSM_LOCK_SERVE_H */
