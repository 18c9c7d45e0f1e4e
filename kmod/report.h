/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reports: a node replies with numbers about itself when another node asks. The numbers of a reply
 * are for people: nothing in the module depends on them.
 */
#ifndef KDSM_REPORT_H
#define KDSM_REPORT_H

#include "cluster.h"

/* Handler of KDSM_MESSAGE_REPORT, see kdsm_handler_t; context is the cluster */
int kdsm_report_serve(void *context, struct kdsm_request *request);

/**
 * kdsm_report_nodes() - ask all nodes for KDSM_REPORT_NODE in parallel
 * @cluster: the cluster
 * @timeout: in ms
 * @count: set to the number of nodes
 *
 * A reply with status 0 is a struct kdsm_wire_node. Sleeps until all nodes have answered, the time
 * is over, or a fatal signal arrives.
 *
 * Return: *@count replies, by number of the node, which the caller frees with kvfree(); or
 * ERR_PTR() of the errors of kdsm_inquire().
 */
struct kdsm_reply *kdsm_report_nodes(struct kdsm_cluster *cluster, unsigned int timeout,
				     unsigned int *count);

/**
 * kdsm_report_ask() - ask one node
 * @cluster: the cluster
 * @node: a node, or this one
 * @report: enum kdsm_report
 * @from: see there
 * @reply: filled in; its length is valid for the report
 * @timeout: in ms
 *
 * Return: 0, the status of the reply, -EPROTO if the reply is malformed, or an error of
 * kdsm_inquire().
 */
int kdsm_report_ask(struct kdsm_cluster *cluster, unsigned int node, enum kdsm_report report,
		    u64 from, struct kdsm_reply *reply, unsigned int timeout);

#endif /* KDSM_REPORT_H */
