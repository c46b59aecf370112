package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/holiman/uint256"
)

// word is a number of up to 256 bits: in JSON a number, or a string with hexadecimal digits.
type word struct{ uint256.Int }

func (w *word) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	if len(text) == 0 || string(text) == "null" {
		w.Clear()
		return nil
	}
	if len(text) > 2 && text[1] == 'x' {
		digits := text[2:]
		for len(digits) > 1 && digits[0] == '0' {
			digits = digits[1:]
		}
		return w.SetFromHex("0x" + string(digits))
	}
	return w.SetFromDecimal(string(text))
}

func (w word) MarshalJSON() ([]byte, error) { return []byte(w.Dec()), nil }

// account is an account of a case file.
type account struct {
	Balance word            `json:"balance"`
	Nonce   json.RawMessage `json:"nonce"`
	Code    hexutil.Bytes   `json:"code"`
	Storage map[string]word `json:"storage"`
}

func (a account) nonce() (uint64, error) {
	var found word
	if len(a.Nonce) == 0 {
		return 0, nil
	}
	if err := found.UnmarshalJSON(a.Nonce); err != nil {
		return 0, err
	}
	return found.Uint64(), nil
}

// database holds nothing: states are never committed, so all of them can share it.
var database = state.NewDatabase(triedb.NewDatabase(rawdb.NewMemoryDatabase(), triedb.HashDefaults), nil)

// stateOf returns a state with these accounts, empty ones included.
func stateOf(accounts map[common.Address]account) (*state.StateDB, error) {
	found, err := state.New(types.EmptyRootHash, database)
	if err != nil {
		return nil, err
	}
	for address, account := range accounts {
		nonce, err := account.nonce()
		if err != nil {
			return nil, fmt.Errorf("nonce of %v: %w", address, err)
		}
		found.SetBalance(address, &account.Balance.Int, tracing.BalanceChangeUnspecified)
		found.SetNonce(address, nonce, tracing.NonceChangeGenesis)
		if len(account.Code) > 0 {
			found.SetCode(address, account.Code, tracing.CodeChangeUnspecified)
		}
		for key, value := range account.Storage {
			var slot word
			if err := slot.UnmarshalJSON([]byte(strconv.Quote(key))); err != nil {
				return nil, fmt.Errorf("slot %s of %v: %w", key, address, err)
			}
			found.SetState(address, slot.Bytes32(), value.Bytes32())
		}
	}
	// The first rules keep empty accounts. The root makes storage known to the check of EIP-7610.
	found.IntermediateRoot(params.Rules{})
	return found, nil
}
